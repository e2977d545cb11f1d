//===- Monitor.h - failures that nobody is told of --------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_MONITOR_H
#define FSDP_RUNTIME_COMM_CUDA_MONITOR_H

#include "base/Failure.h"
#include "base/WaitCounter.h"
#include "runtime/comm/cuda/Collectives.h"

#include <atomic>
#include <thread>

namespace fsdp::rt {

/// A thread of each rank that looks after its collectives: the host thread may be inside of a call
/// that waits for a device that waits for a rank that is gone. What it finds is the job's failure;
/// once the job has failed it lets the device go where it can (Collectives::abandon), so that the
/// host thread comes back. The job's watchdog ends a process whose host thread does not.
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
