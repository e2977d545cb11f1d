//===- Monitor.h - detects failures of collectives ------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_MONITOR_H
#define FSDP_RUNTIME_COMM_CUDA_MONITOR_H

#include "base/Failure.h"
#include "base/WaitCounter.h"
#include "runtime/comm/cuda/Collectives.h"

#include <atomic>
#include <thread>

namespace fsdp::rt {

/// A thread of each rank that monitors its collectives, because the host thread may be in a call
/// that waits for the device, which waits for a lost rank. It raises the errors that it finds as
/// the job's failure. After a failure of the job it ends the device's waits where possible
/// (Collectives::abandon), so that the host thread returns. The job's watchdog ends a process whose
/// host thread does not return.
class Monitor {
public:
  Monitor(Collectives &collectives, base::Failure &failure, int rank, int device);
  ~Monitor();

private:
  void run();

  Collectives &collectives_;
  base::Failure &failure_;
  int rank_, device_;
  std::atomic<bool> stop_{false};
  base::WaitCounter wake_;
  std::thread thread_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_MONITOR_H
