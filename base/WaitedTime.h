//===- WaitedTime.h - how long others have been late --------------------------===//
#ifndef BASE_WAITEDTIME_H
#define BASE_WAITEDTIME_H

#include "base/WaitCounter.h"

#include <algorithm>

namespace base {

/// Seconds that a thread has waited for somebody else, who could meanwhile have come. The time
/// between two looks counts for half a second at most: a process that was itself stopped, or got no
/// processor, or a machine that stood still, does not make others late. Whoever waits looks several
/// times a second.
class WaitedTime {
public:
  /// At most that much counts between two looks.
  static constexpr double kMaxSeconds = 0.5;

  /// Seconds until now.
  double look() {
    const double time = now();
    seconds_ += std::min(time - last_, kMaxSeconds);
    last_ = time;
    return seconds_;
  }
  /// Somebody has come: waits for the next.
  void restart() {
    last_ = now();
    seconds_ = 0;
  }

private:
  double last_ = now(), seconds_ = 0;
};

} // namespace base

#endif // BASE_WAITEDTIME_H
