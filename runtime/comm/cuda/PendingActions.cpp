#include "runtime/comm/cuda/PendingActions.h"
#include "base/WaitCounter.h"

#include <unistd.h>

namespace fsdp::rt {

using namespace base;

PendingActions::~PendingActions() {
  for (Entry &entry : entries_)
    if (entry.done)
      cudaEventDestroy(entry.done);
}

void PendingActions::forgetFinished() {
  while (finished_ < added_ &&
         cudaEventQuery(entries_[finished_ % kMax].done) != cudaErrorNotReady) {
    ++finished_;
    since_ = now();
  }
}

void PendingActions::begin(const char *action, std::int64_t number,
                           const CollectiveRequest *transfer) {
  std::lock_guard<std::mutex> lock(mutex_);
  begun_ = action;
  begunNumber_ = number;
  begunRequest_ = transfer ? *transfer : CollectiveRequest{};
  if (added_ == finished_)
    since_ = now();
}

cudaError_t PendingActions::enqueued(cudaStream_t stream, const Failure &failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (added_ - finished_ == kMax) {
    forgetFinished();
    if (added_ - finished_ < kMax)
      break;
    lock.unlock();
    failure.check();
    usleep(50);
    lock.lock();
  }
  Entry &entry = entries_[added_ % kMax];
  if (!entry.done)
    if (cudaError_t status = cudaEventCreateWithFlags(&entry.done, cudaEventDisableTiming))
      return status;
  entry.action = begun_;
  entry.number = begunNumber_;
  entry.request = begunRequest_;
  begun_ = nullptr;
  ++added_;
  return cudaEventRecord(entry.done, stream);
}

PendingActions::Oldest PendingActions::oldest() {
  std::lock_guard<std::mutex> lock(mutex_);
  forgetFinished();
  const double seconds = now() - since_;
  if (finished_ == added_)
    return {begun_, begunNumber_, seconds, begunRequest_};
  const Entry &entry = entries_[finished_ % kMax];
  return {entry.action, entry.number, seconds, entry.request};
}

} // namespace fsdp::rt
