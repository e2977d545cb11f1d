//===- WaitCounter.h - a counter to wait for ------------------------------===//
#ifndef BASE_WAITCOUNTER_H
#define BASE_WAITCOUNTER_H

#include <atomic>
#include <cstdint>

namespace base {

/// Seconds of the monotonic clock (the same on every process of a machine).
double now();
/// Seconds that the calling thread has run on a processor.
double processorSeconds();

/// A counter that only increases. Waiting spins briefly and then sleeps in the kernel, as there are
/// more threads than cores. It holds no pointer, so it works in memory that processes share.
///
/// [Note: no lost wake] A waiter reads `signal`, lowers `wakeAt` to its target, and reads `value`
/// again before it sleeps on `signal`. `advance` publishes `value` before it reads `wakeAt`, and
/// changes `signal` after it has reset `wakeAt`. So either the waiter sees the value, or `advance`
/// sees the target, or the sleep returns at once because `signal` has changed.
class WaitCounter {
public:
  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }
  /// Adds `by` and wakes the waiters whose target is reached. Any thread or process may call it.
  std::uint64_t advance(std::uint64_t by = 1);
  /// Waits until value() >= target, for about `seconds` at most. True when reached.
  bool waitFor(std::uint64_t target, double seconds);

private:
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> wakeAt_{~std::uint64_t(0)};
  std::atomic<std::uint32_t> signal_{0};
};

} // namespace base

#endif // BASE_WAITCOUNTER_H
