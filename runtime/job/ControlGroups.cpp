#include "runtime/job/ControlGroups.h"

#include <fstream>

namespace fsdp::rt {

void forEachControlGroup(const std::string &root, const std::string &kind,
                         const std::function<void(const std::string &, bool)> &visit) {
  // Lines "0::/path" (version 2) and "9:memory:/path" (version 1). The limits of parent groups
  // apply too; in a container the path may begin at a root that is not mounted there.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos)
      continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = kinds == ",,";
    if (!unified && kinds.find("," + kind + ",") == kinds.npos)
      continue;
    const std::string top = root + "/sys/fs/cgroup" + (unified ? "" : "/" + kind);
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      visit(top + path, unified);
      if (path.find('/') == path.npos)
        break;
    }
  }
}

} // namespace fsdp::rt
