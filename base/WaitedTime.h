//===- WaitedTime.h - time spent waiting for others -----------------------===//
#ifndef BASE_WAITEDTIME_H
#define BASE_WAITEDTIME_H

#include "base/WaitCounter.h"

#include <algorithm>

namespace base {

/// Seconds that a thread has waited for another rank. The time between two calls of look() counts
/// for half a second at most: the other rank is not late because this process was stopped or got no
/// processor, or because the machine was suspended. A waiter calls look() several times a second.
class WaitedTime {
public:
  /// The most that counts between two calls of look().
  static constexpr double kMaxSeconds = 0.5;

  /// Seconds waited until now.
  double look() {
    const double time = now();
    seconds_ += std::min(time - last_, kMaxSeconds);
    last_ = time;
    return seconds_;
  }
  /// Starts again at 0.
  void restart() {
    last_ = now();
    seconds_ = 0;
  }

private:
  double last_ = now(), seconds_ = 0;
};

} // namespace base

#endif // BASE_WAITEDTIME_H
