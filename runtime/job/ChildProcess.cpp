#include "runtime/job/ChildProcess.h"

#include "base/WaitCounter.h"

#include <cerrno>
#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr int kNoStatus = 255;
/// Time after SIGTERM for the child to remove its temporary files.
constexpr double kCleanUpTimeout = 0.5;

/// The status of a child that has ended within `seconds`.
std::optional<int> await(pid_t child, double seconds) {
  for (const double deadline = now() + seconds;; usleep(5'000)) {
    int status = 0;
    const pid_t which = waitpid(child, &status, WNOHANG);
    if (which == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : kNoStatus;
    if (which < 0 && errno != EINTR)
      return kNoStatus;
    if (now() > deadline)
      return std::nullopt;
  }
}

} // namespace

std::optional<int> runInChild(double seconds, const std::function<int()> &work) {
  const pid_t self = getpid(), child = fork();
  if (child < 0)
    return kNoStatus;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGTERM, SIG_DFL); // in ranks it ends the run after a step
    _exit(getppid() == self ? work() : kNoStatus);
  }
  if (const std::optional<int> status = await(child, seconds))
    return status;
  kill(child, SIGTERM);
  if (!await(child, kCleanUpTimeout)) {
    kill(child, SIGKILL);
    await(child, kCleanUpTimeout);
  }
  return std::nullopt;
}

} // namespace fsdp::rt
