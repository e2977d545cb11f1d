#include "runtime/comm/cuda/PendingActions.h"
#include "base/WaitCounter.h"

#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

cudaError_t makeEvent(EventRef &event) {
  cudaEvent_t made = nullptr;
  if (cudaError_t status = cudaEventCreateWithFlags(&made, cudaEventDisableTiming))
    return status;
  event = EventRef(made, [](cudaEvent_t unused) { cudaEventDestroy(unused); });
  return cudaSuccess;
}

void PendingActions::forgetFinished() {
  while (finished_ < added_ &&
         cudaEventQuery(entries_[finished_ % kMax].done()) != cudaErrorNotReady) {
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

/// The entry of the next action, when there is room for it.
PendingActions::Entry &PendingActions::nextEntry(std::unique_lock<std::mutex> &lock,
                                                 const Failure &failure) {
  while (added_ - finished_ == kMax) {
    forgetFinished();
    if (added_ - finished_ < kMax)
      break;
    lock.unlock();
    failure.check();
    usleep(50);
    lock.lock();
  }
  return entries_[added_ % kMax];
}

cudaError_t PendingActions::enqueued(cudaStream_t stream, const Failure &failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  Entry &entry = nextEntry(lock, failure);
  if (!entry.own)
    if (cudaError_t status = makeEvent(entry.own))
      return status;
  entry.action = begun_;
  entry.number = begunNumber_;
  entry.request = begunRequest_;
  entry.ofGraph = nullptr;
  begun_ = nullptr;
  ++added_;
  return cudaEventRecord(entry.done(), stream);
}

void PendingActions::captured() {
  std::lock_guard<std::mutex> lock(mutex_);
  begun_ = nullptr;
}

void PendingActions::launched(const char *action, std::int64_t number,
                              const CollectiveRequest &transfer, EventRef done,
                              const Failure &failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  Entry &entry = nextEntry(lock, failure);
  if (added_ == finished_)
    since_ = now();
  entry.action = action;
  entry.number = number;
  entry.request = transfer;
  entry.ofGraph = std::move(done);
  begun_ = nullptr;
  ++added_;
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
