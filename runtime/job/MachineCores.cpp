#include "runtime/job/MachineCores.h"

#include "runtime/job/ControlGroups.h"
#include "runtime/job/LauncherWatch.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <thread>
#include <vector>

namespace fsdp::rt {

namespace {

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
