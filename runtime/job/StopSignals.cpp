#include "runtime/job/StopSignals.h"

#include "runtime/device/WaitCounter.h"
#include "runtime/files/AtomicFile.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace fsdp::rt {

namespace {

std::atomic<int> saves{0}, ended{0};
std::atomic<double> endedAt{0}, savesAt{0};
static_assert(std::atomic<double>::is_always_lock_free, "a signal handler uses it");

void askForSave(int) {
  savesAt = now();
  ++saves;
}

void askForEnd(int number) {
  int none = 0;
  if (ended.compare_exchange_strong(none, number)) {
    endedAt = now();
    return;
  }
  if (endedAt == 0 || now() - endedAt < kSameSignalSeconds)
    return;
  removeTemporaryFiles();
  _exit(statusOfSignal(ended));
}

void handle(int number, void (*handler)(int)) {
  struct sigaction before;
  if (sigaction(number, nullptr, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
      before.sa_handler == SIG_IGN)
    return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

} // namespace

void handleStopSignals() {
  handle(SIGTERM, askForEnd);
  handle(SIGINT, askForEnd);
  handle(SIGUSR1, askForSave);
}

StopRequest stopRequest() { return {saves, savesAt, ended}; }

} // namespace fsdp::rt
