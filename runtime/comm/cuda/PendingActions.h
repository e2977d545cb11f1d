//===- PendingActions.h - unfinished collectives of a stream --------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H
#define FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H

#include "base/Failure.h"
#include "runtime/program/CollectiveRequest.h"

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace fsdp::rt {

/// The collectives of one stream that the device has not finished, for the error about one that
/// hangs. The host thread adds collectives, the monitor's thread reads them.
class PendingActions {
public:
  PendingActions() = default;
  ~PendingActions();
  PendingActions(const PendingActions &) = delete;
  PendingActions &operator=(const PendingActions &) = delete;

  /// The host thread is about to enqueue `action` (a literal), collective `number` of its
  /// communicator; the call may itself wait for the device. `transfer`: the request of a send or a
  /// receive, else null.
  void begin(const char *action, std::int64_t number, const CollectiveRequest *transfer);
  /// It has been enqueued on `stream`. Waits for room if there is none; throws if the job has
  /// failed.
  cudaError_t enqueued(cudaStream_t stream, const base::Failure &failure);
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
    cudaEvent_t done = nullptr;
    CollectiveRequest request{};
  };

  void forgetFinished();

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
