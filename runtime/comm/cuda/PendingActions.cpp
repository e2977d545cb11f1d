#include "runtime/comm/cuda/PendingActions.h"
#include "runtime/device/WaitCounter.h"

#include <unistd.h>

namespace fsdp::rt {

PendingActions::~PendingActions() {
  for (Entry &entry : entries_)
    if (entry.done)
      cudaEventDestroy(entry.done);
}

void PendingActions::forgetFinished() {
  while (finished_ < added_ &&
         cudaEventQuery(entries_[finished_ % kMost].done) != cudaErrorNotReady) {
    ++finished_;
    since_ = now();
  }
}

void PendingActions::begin(const char *action) {
  std::lock_guard<std::mutex> lock(mutex_);
  begun_ = action;
  if (added_ == finished_)
    since_ = now();
}

cudaError_t PendingActions::enqueued(cudaStream_t stream, const Failure &failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (added_ - finished_ == kMost) {
    forgetFinished();
    if (added_ - finished_ < kMost)
      break;
    lock.unlock();
    failure.check();
    usleep(50);
    lock.lock();
  }
  Entry &entry = entries_[added_ % kMost];
  if (!entry.done)
    if (cudaError_t status = cudaEventCreateWithFlags(&entry.done, cudaEventDisableTiming))
      return status;
  entry.action = begun_;
  begun_ = nullptr;
  ++added_;
  return cudaEventRecord(entry.done, stream);
}

const char *PendingActions::oldest(double &seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  forgetFinished();
  seconds = now() - since_;
  return finished_ < added_ ? entries_[finished_ % kMost].action : begun_;
}

} // namespace fsdp::rt
