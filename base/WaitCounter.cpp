#include "base/WaitCounter.h"

#include "base/SpinPause.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace base {

namespace {

double secondsOf(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

double now() { return secondsOf(CLOCK_MONOTONIC); }
double processorSeconds() { return secondsOf(CLOCK_THREAD_CPUTIME_ID); }

namespace {

constexpr int kSpins = 64; // about 2 microseconds: a hand-over between two running threads

// Not the private kind: the word may lie in memory that processes share.
void sleepOn(std::atomic<std::uint32_t> &word, std::uint32_t seen, double seconds) {
  timespec time;
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&word), FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wakeAll(std::atomic<std::uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&word), FUTEX_WAKE, INT_MAX, nullptr,
          nullptr, 0);
}

} // namespace

std::uint64_t WaitCounter::advance(std::uint64_t by) {
  std::uint64_t value = value_.fetch_add(by, std::memory_order_seq_cst) + by;
  if (value >= wakeAt_.load(std::memory_order_seq_cst)) {
    wakeAt_.store(~std::uint64_t(0), std::memory_order_seq_cst);
    signal_.fetch_add(1, std::memory_order_seq_cst);
    wakeAll(signal_);
  }
  return value;
}

bool WaitCounter::waitFor(std::uint64_t target, double seconds) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value() >= target)
      return true;
    pauseInSpin();
  }
  double deadline = now() + seconds;
  for (;;) {
    std::uint32_t seen = signal_.load(std::memory_order_seq_cst);
    std::uint64_t wanted = wakeAt_.load(std::memory_order_seq_cst);
    while (target < wanted && !wakeAt_.compare_exchange_weak(wanted, target)) {
    }
    if (value_.load(std::memory_order_seq_cst) >= target)
      return true;
    double left = deadline - now();
    if (left <= 0)
      return false;
    sleepOn(signal_, seen, left);
  }
}

} // namespace base
