#include "runtime/job/LauncherWatch.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/job/Launcher.h"
#include "runtime/job/Process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 // the same on every architecture
#endif

/// The variable in which a launcher numbers its ranks; empty for variables that were set by hand.
std::string rankVariable(const LaunchEnvironment &launched) {
  if (launched.by == "Open MPI")
    return "OMPI_COMM_WORLD_RANK";
  if (launched.by == "PMI")
    return "PMI_RANK";
  if (launched.by == "Slurm")
    return "SLURM_PROCID";
  return std::getenv("TORCHELASTIC_RUN_ID") ? "RANK" : "";
}

} // namespace

int launcherProcess() {
  const std::optional<LaunchEnvironment> launched = detectLauncher();
  const std::string variable = launched ? rankVariable(*launched) : "";
  if (variable.empty())
    return 0;
  int pid = static_cast<int>(getppid());
  while (pid > 0 && startedWith(pid, variable))
    pid = parentOf(pid);
  return pid;
}

LauncherWatch::LauncherWatch() : pid_(launcherProcess()) {
  if (pid_ <= 0)
    return;
  description_ =
      format("the launcher '%s' (process %d)", printable(commandOf(pid_), 32).c_str(), pid_);
  descriptor_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))); // closed on exec
}

bool LauncherWatch::gone() const {
  if (pid_ <= 0)
    return false;
  if (!descriptor_) // Linux before 5.3
    return kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd entry{descriptor_.get(), POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

} // namespace fsdp::rt
