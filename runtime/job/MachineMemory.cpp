#include "runtime/job/MachineMemory.h"
#include "base/Error.h"
#include "runtime/job/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fsdp::rt {

using namespace base;

namespace {

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

} // namespace fsdp::rt
