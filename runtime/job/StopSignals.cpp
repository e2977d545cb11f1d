#include "runtime/job/StopSignals.h"

#include "base/AtomicFile.h"
#include "base/WaitCounter.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

std::atomic<int> saves{0}, ended{0};
std::atomic<double> savesAt{0};
/// When the end was first requested: by another process, and by the parent that passes signals on.
std::atomic<double> endedAt[2];
std::atomic<int> passingParent{0};
static_assert(std::atomic<double>::is_always_lock_free, "a signal handler uses it");

void askForSave(int, siginfo_t *, void *) {
  savesAt = now();
  ++saves;
}

// A signal of a terminal to the whole group arrives twice, the second time from the parent, which
// may be seconds later on a busy machine. So signals of two senders are one request, and two
// signals of one sender are two. The parent does not pass on an immediate repetition.
void askForEnd(int number, siginfo_t *info, void *) {
  int none = 0;
  ended.compare_exchange_strong(none, number);
  const bool passedOn =
      info->si_code == SI_USER && info->si_pid != 0 && info->si_pid == passingParent;
  double never = 0;
  if (endedAt[passedOn].compare_exchange_strong(never, now()))
    return;
  if (number == SIGHUP || (!passedOn && now() - endedAt[passedOn] < kSameSignalSeconds))
    return;
  removeTemporaryFiles();
  _exit(statusOfSignal(ended));
}

void handle(int number, void (*handler)(int, siginfo_t *, void *)) {
  if (isHandledBy(number, SIG_IGN))
    return;
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

} // namespace

bool isHandledBy(int number, void (*handler)(int)) {
  struct sigaction action;
  return sigaction(number, nullptr, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
         action.sa_handler == handler;
}

const char *nameOfStop(int number) {
  return number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

void handleStopSignals() {
  handle(SIGHUP, askForEnd);
  handle(SIGTERM, askForEnd);
  handle(SIGINT, askForEnd);
  handle(SIGUSR1, askForSave);
}

void expectSignalsOf(int parent) { passingParent = parent; }

void noteStop(int number) {
  int none = 0;
  ended.compare_exchange_strong(none, number);
}

StopRequest stopRequest() { return {saves, savesAt, ended}; }

} // namespace fsdp::rt
