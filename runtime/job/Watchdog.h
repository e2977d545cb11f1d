//===- Watchdog.h - heartbeats and the end of hanging ranks ---------------===//
#ifndef FSDP_RUNTIME_JOB_WATCHDOG_H
#define FSDP_RUNTIME_JOB_WATCHDOG_H

#include "base/WaitedTime.h"
#include "runtime/comm/SharedSegment.h"
#include "runtime/job/LauncherWatch.h"

#include <atomic>
#include <functional>
#include <thread>

namespace fsdp::rt {

/// Seconds without a heartbeat after which a process has failed, as all of its threads are stopped:
/// 30, or three quarters of the longest wait in a collective if that is shorter: a rank that waits
/// for the stopped one may be waited for itself, along a pipeline, and must not time out first.
double heartbeatTimeout(double timeoutSeconds);

/// Seconds between the job's failure and the forced end of a rank.
constexpr double kGraceSeconds = 2;

/// A thread of each rank. It writes the heartbeat and ends the process if the job has failed and
/// the rank does not stop. Without a parent that supervises the ranks it also checks the heartbeat
/// of a neighbour, and ends the job when the launcher has ended.
class Watchdog {
public:
  /// `neighbour`: the rank whose heartbeat is checked, or -1. `notice` is called when the job has
  /// failed, once; `report` prints the cause before the process is ended; empty: the parent prints
  /// it.
  Watchdog(SharedSegment &segment, int rank, int neighbour, double timeoutSeconds,
           std::function<void()> notice, std::function<void(base::Failure &)> report);
  ~Watchdog();

private:
  void run();
  void checkNeighbour();

  SharedSegment &segment_;
  int rank_, neighbour_;
  double heartbeatTimeout_;
  double lastHeartbeat_ = 0;        ///< the neighbour's latest heartbeat
  base::WaitedTime sinceHeartbeat_; ///< since then
  std::function<void()> notice_;
  std::function<void(base::Failure &)> report_;
  LauncherWatch launcher_;
  std::atomic<bool> stop_{false};
  base::WaitCounter wake_;
  std::thread thread_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_WATCHDOG_H
