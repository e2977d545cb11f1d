//===- PendingActions.h - unfinished collectives of a stream --------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H
#define FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H

#include "base/Failure.h"
#include "runtime/program/CollectiveRequest.h"

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

namespace fsdp::rt {

/// An event without times, destroyed with its last owner.
using EventRef = std::shared_ptr<CUevent_st>;
/// Makes one.
cudaError_t makeEvent(EventRef &event);

/// The collectives of one stream that the device has not finished, for the error about one that
/// hangs. The host thread adds collectives, the monitor's thread reads them.
class PendingActions {
public:
  PendingActions() = default;
  PendingActions(const PendingActions &) = delete;
  PendingActions &operator=(const PendingActions &) = delete;

  /// The host thread is about to enqueue `action` (a literal), collective `number` of its
  /// communicator; the call may itself wait for the device. `transfer`: the request of a send or a
  /// receive, else null.
  void begin(const char *action, std::int64_t number, const CollectiveRequest *transfer);
  /// It has been enqueued on `stream`. Waits for room if there is none; throws if the job has
  /// failed.
  cudaError_t enqueued(cudaStream_t stream, const base::Failure &failure);
  /// Likewise of a call that was captured into a graph: it has ended, and nothing is enqueued.
  void captured();
  /// Collective `number` has been enqueued by a graph, whose launch has recorded `done` after it.
  /// The next launch records it again: finished collectives must have been removed before.
  void launched(const char *action, std::int64_t number, const CollectiveRequest &transfer,
                EventRef done, const base::Failure &failure);
  /// Removes finished actions. Returns the oldest unfinished one, and the seconds for which it has
  /// been the oldest; its name is null if there is none.
  struct Oldest {
    const char *action = nullptr;
    std::int64_t number = 0;
    double seconds = 0;
    CollectiveRequest request{}; ///< of a transfer
  };
  Oldest oldest();

private:
  static constexpr std::size_t kMax = 256;
  struct Entry {
    const char *action = nullptr;
    std::int64_t number = 0;
    EventRef own;     ///< recorded by the host, made at the first use
    EventRef ofGraph; ///< if the latest action is one of a graph, else null
    CollectiveRequest request{};

    cudaEvent_t done() const { return ofGraph ? ofGraph.get() : own.get(); }
  };

  void forgetFinished();
  Entry &nextEntry(std::unique_lock<std::mutex> &lock, const base::Failure &failure);

  std::mutex mutex_;
  std::array<Entry, kMax> entries_;
  const char *begun_ = nullptr; ///< the action that the host thread is enqueuing
  std::int64_t begunNumber_ = 0;
  CollectiveRequest begunRequest_{};
  std::uint64_t added_ = 0, finished_ = 0;
  double since_ = 0; ///< when the oldest became the oldest
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H
