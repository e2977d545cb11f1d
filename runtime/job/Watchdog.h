//===- Watchdog.h - no rank is left hanging ---------------------------------===//
#ifndef FSDP_RUNTIME_JOB_WATCHDOG_H
#define FSDP_RUNTIME_JOB_WATCHDOG_H

#include "base/WaitedTime.h"
#include "runtime/comm/SharedSegment.h"
#include "runtime/job/LauncherWatch.h"

#include <atomic>
#include <functional>
#include <thread>

namespace fsdp::rt {

/// Seconds without a sign of life after which a process counts as hanging: its threads are stopped
/// as a whole. The longest wait in a collective, where that is shorter.
double heartbeatTimeout(double timeoutSeconds);

/// Seconds between the job's failure and the end of a rank that does not end by itself.
constexpr double kGraceSeconds = 2;

/// A thread of each rank: gives the signs of life, ends the process when the job has failed and the
/// rank does not stop by itself, and, where no parent looks after the ranks, looks after its
/// neighbour and after the launcher: ranks end with it.
class Watchdog {
public:
  /// `neighbour`: the rank to look after, or -1. `report` prints the cause, before the process is
  /// ended; nothing leaves that to a parent.
  Watchdog(SharedSegment &segment, int rank, int neighbour, double timeoutSeconds,
           std::function<void(base::Failure &)> report);
  ~Watchdog();

private:
  void run();
  void checkNeighbour();

  SharedSegment &segment_;
  int rank_, neighbour_;
  double heartbeatTimeout_;
  double lastHeartbeat_ = 0;        ///< the neighbour's latest sign of life
  base::WaitedTime sinceHeartbeat_; ///< since then
  std::function<void(base::Failure &)> report_;
  LauncherWatch launcher_;
  std::atomic<bool> stop_{false};
  base::WaitCounter wake_;
  std::thread thread_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_WATCHDOG_H
