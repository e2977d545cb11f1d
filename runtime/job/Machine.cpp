#include "runtime/job/Machine.h"
#include "base/Error.h"
#include "runtime/job/LauncherWatch.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <thread>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// Calls `visit(folder, unified)` for the folder of each control group of this process whose limits
/// for `kind` ("memory", "cpu") apply to it: its group and the parent groups. `unified`: of version
/// 2. Reads /proc and /sys below `root`.
template <class Visit>
void forEachControlGroup(const std::string &root, const std::string &kind, Visit visit) {
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

/// The number in a file, or UINT64_MAX if there is none ("max").
std::uint64_t numberIn(const std::string &path) {
  std::uint64_t number = 0;
  std::ifstream file(path);
  return file >> number ? number : UINT64_MAX;
}

/// The number after `key` in a file of lines "key number", or UINT64_MAX.
std::uint64_t numberAfter(const std::string &path, const std::string &key) {
  std::ifstream file(path);
  std::string line, word;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::uint64_t number = 0;
    if (words >> word && word == key && words >> number)
      return number;
  }
  return UINT64_MAX;
}

std::uint64_t known(std::uint64_t number) { return number == UINT64_MAX ? 0 : number; }

/// Applies a group's limit if it is lower than those found so far.
void limitBy(MachineMemory &memory, const std::string &folder, const char *limitFile,
             const char *usageFile) {
  const std::uint64_t limit = numberIn(folder + "/" + limitFile);
  if (limit == UINT64_MAX || limit > memory.total) // version 1 writes a huge number for none
    return;
  // Not "cache" or "file": those include shared memory, which cannot be freed.
  const std::string statistics = folder + "/memory.stat";
  const std::uint64_t files = known(numberAfter(statistics, "inactive_file")) +
                              known(numberAfter(statistics, "active_file"));
  const std::uint64_t used = known(numberIn(folder + "/" + usageFile));
  const std::uint64_t kept = used - std::min(used, files);
  memory.groupLimit = std::min(memory.groupLimit, limit);
  memory.groupAvailable = std::min(memory.groupAvailable, limit - std::min(limit, kept));
}

std::string gib(std::uint64_t bytes) {
  return format("%.2f GiB", static_cast<double>(bytes) / (1 << 30));
}

/// Number of cores that a process may run on; 0 if unknown.
int affinityOf(int pid) {
  // The kernel refuses sets that are smaller than its own, whose size is not known before.
  for (std::size_t cores = 1024; cores <= 65536; cores *= 2) {
    std::vector<cpu_set_t> set(cores / CPU_SETSIZE);
    const std::size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(pid, bytes, set.data()) == 0)
      return CPU_COUNT_S(bytes, set.data());
  }
  return 0;
}

/// Cores' worth of time that a group allows; 0: no limit.
double quotaOf(const std::string &folder, bool unified) {
  double quota = 0, period = 0;
  if (unified) {
    std::ifstream file(folder + "/cpu.max"); // "max 100000" is no number
    return file >> quota >> period && period > 0 ? quota / period : 0;
  }
  std::ifstream quotaFile(folder + "/cpu.cfs_quota_us"), periodFile(folder + "/cpu.cfs_period_us");
  return quotaFile >> quota && periodFile >> period && quota > 0 && period > 0 ? quota / period : 0;
}

} // namespace

MachineMemory MachineMemory::read(const std::string &root) {
  MachineMemory memory;
  const auto fromKib = [](std::uint64_t kib) { return kib == UINT64_MAX ? kib : kib * 1024; };
  memory.total = fromKib(numberAfter(root + "/proc/meminfo", "MemTotal:"));
  memory.available = fromKib(numberAfter(root + "/proc/meminfo", "MemAvailable:"));
  forEachControlGroup(root, "memory", [&](const std::string &folder, bool unified) {
    if (unified)
      limitBy(memory, folder, "memory.max", "memory.current");
    else
      limitBy(memory, folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
  });
  return memory;
}

void requireMemory(const MachineMemory &memory, int ranks, std::uint64_t arenaBytes) {
  const bool group = memory.groupAvailable < memory.available;
  const std::uint64_t available = group ? memory.groupAvailable : memory.available;
  if (arenaBytes <= available / static_cast<std::uint64_t>(std::max(ranks, 1)))
    return;
  throw Error(format(
      "the arenas of %d rank(s) on this machine take %.2f GiB (%s each), but %s of memory are "
      "available (%s %s): start fewer ranks on this machine, free memory, or compile for less: "
      "a smaller --batch, --accumulate, --remat=full, more ranks (--report shows what a rank "
      "takes)",
      ranks, static_cast<double>(arenaBytes) / (1 << 30) * ranks, gib(arenaBytes).c_str(),
      gib(available).c_str(), group ? "the limit of this control group is" : "the machine has",
      gib(group ? memory.groupLimit : memory.total).c_str()));
}

MachineCores MachineCores::read(const std::string &root) {
  MachineCores cores;
  cores.own = affinityOf(0);
  if (cores.own == 0)
    cores.own = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (const int launcher = launcherProcess())
    cores.launcher = affinityOf(launcher);
  forEachControlGroup(root, "cpu", [&](const std::string &folder, bool unified) {
    if (const double quota = quotaOf(folder, unified); quota > 0)
      cores.quota = cores.quota > 0 ? std::min(cores.quota, quota) : quota;
  });
  return cores;
}

int MachineCores::perRank(int ranks) const {
  ranks = std::max(ranks, 1);
  // A launcher binds each rank to separate cores, or leaves all cores to each.
  int cores = launcher > 0 ? std::min(own, std::max(own, launcher) / ranks) : own / ranks;
  if (quota > 0)
    cores = std::min(cores, static_cast<int>(quota / ranks));
  return std::max(cores, 1);
}

} // namespace fsdp::rt
