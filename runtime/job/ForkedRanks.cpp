#include "runtime/job/ForkedRanks.h"
#include "base/Error.h"
#include "base/WaitCounter.h"
#include "runtime/job/Process.h"
#include "runtime/job/StopSignals.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

/// Seconds in which a process ends after SIGKILL, and in which one with much memory to free does.
constexpr double kKillTimeout = 5, kKillTimeoutOfLargeProcess = 60;

} // namespace

ForkedRanks::ForkedRanks(int count, bool handlesStop)
    : handlesStop_(handlesStop), children_(static_cast<std::size_t>(count)) {
  sigemptyset(&awaited_);
  sigaddset(&awaited_, SIGCHLD);
  for (int number : {SIGHUP, SIGINT, SIGTERM})
    if (handlesStop_ ? !isHandledBy(number, SIG_IGN) : isHandledBy(number, SIG_DFL))
      sigaddset(&awaited_, number);
  if (handlesStop_ && !isHandledBy(SIGUSR1, SIG_IGN))
    sigaddset(&awaited_, SIGUSR1);
  sigprocmask(SIG_BLOCK, &awaited_, &before_);
  if (handlesStop_) // one that arrived between attempts is for these ranks too
    stopSignal_ = stopRequest().signal, stopSignalTime_ = now();
}

ForkedRanks::~ForkedRanks() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void ForkedRanks::start(const std::function<int(int)> &rankMain) {
  std::fflush(nullptr); // or every rank would print the buffered output
  const pid_t self = getpid();
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const int rank = static_cast<int>(i);
    const pid_t pid = fork();
    if (pid < 0)
      throw Error(format("cannot start the process of rank %d: %s", rank, std::strerror(errno)));
    if (pid == 0) {
      sigprocmask(SIG_SETMASK, &before_, nullptr);
      prctl(PR_SET_PDEATHSIG, SIGKILL); // no orphans
      if (getppid() != self)
        _exit(kExitFailure);
      expectSignalsOf(static_cast<int>(self));
      const int status = rankMain(rank);
      std::fflush(nullptr);
      _exit(status);
    }
    children_[i] = pid;
  }
}

void ForkedRanks::await(double seconds) {
  timespec pause{0, static_cast<long>(seconds * 1e9)};
  const int number = sigtimedwait(&awaited_, nullptr, &pause);
  if (number <= 0 || number == SIGCHLD)
    return;
  if (!handlesStop_)
    endSignal_ = number;
  else if (number != SIGUSR1 && number != SIGHUP && stopSignal_ &&
           now() - stopSignalTime_ > kSameSignalSeconds)
    endSignal_ = stopSignal_;
  else if (number != SIGUSR1 && stopSignal_)
    return; // the ranks have it
  else if (number != SIGUSR1) {
    stopSignal_ = number, stopSignalTime_ = now();
    noteStop(number);
  }
  for (pid_t child : children_)
    if (child > 0) {
      kill(child, number);
      // One rank is enough, as ranks agree on a save; two that get the signal on different sides of
      // a step's end would save twice.
      if (number == SIGUSR1 && handlesStop_)
        return;
    }
}

bool ForkedRanks::reap(const std::function<void(int rank, int status)> &ended) {
  bool alive = false;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (children_[i] <= 0)
      continue;
    int status = 0;
    const pid_t which = waitpid(children_[i], &status, WNOHANG);
    if (which == 0 || (which < 0 && errno == EINTR)) {
      alive = true;
      continue;
    }
    children_[i] = 0;
    ended(static_cast<int>(i), status);
  }
  return alive;
}

void ForkedRanks::killAll() {
  for (pid_t child : children_)
    if (child > 0)
      kill(child, SIGKILL);
}

bool ForkedRanks::end(double seconds) {
  if (seconds <= 0)
    return false;
  killAll();
  if (seconds < kKillTimeout)
    return false;
  bool mayEnd = false; // a process that frees much memory will end
  for (pid_t child : children_)
    mayEnd |= child > 0 && std::strchr("DZ", stateOf(static_cast<int>(child))) == nullptr;
  return !mayEnd || seconds > kKillTimeoutOfLargeProcess;
}

bool ForkedRanks::anyRuns() const {
  return std::any_of(children_.begin(), children_.end(), [](pid_t child) { return child > 0; });
}

void ForkedRanks::abandon() {
  for (std::size_t i = 0; i < children_.size(); ++i)
    if (const pid_t child = std::exchange(children_[i], 0); child > 0)
      std::fprintf(stderr,
                   "note: rank %d (process %d) has not ended %g s after it was killed: it waits in "
                   "the system, as for a disk that does not answer; this program ends without it\n",
                   static_cast<int>(i), static_cast<int>(child), kKillTimeout);
}

void ForkedRanks::killRank(int rank) {
  if (runs(rank))
    kill(children_[static_cast<std::size_t>(rank)], SIGKILL);
}

int ForkedRanks::statusOfEnd() {
  await(0); // a signal that the ranks got too and died of before this process took it
  if (endSignal_ && stopSignal_)
    return statusOfSignal(endSignal_);
  if (endSignal_) {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    std::raise(endSignal_);
  }
  return 0;
}

Error notRestarted(const Error &error, const char *why) {
  return Error(error.what() + std::string(why), error.status()).at(error.rank(), error.action());
}

std::string describeEnd(int status, bool done) {
  if (WIFSIGNALED(status))
    return format("was killed by signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                  WTERMSIG(status) == SIGKILL ? ", possibly because the machine is out of memory"
                                              : "");
  if (WEXITSTATUS(status) != 0 || !done)
    return format("exited with status %d before the end of the job", WEXITSTATUS(status));
  return "";
}

} // namespace fsdp::rt
