//===- PendingActions.h - what a device has been asked for and not done -----===//
#ifndef FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H
#define FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H

#include "base/Failure.h"
#include "runtime/program/CollectiveRequest.h"

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace fsdp::rt {

/// The collectives of one stream that the device has not finished, so that one that hangs can be
/// named. The host thread adds, the monitor's looks.
class PendingActions {
public:
  PendingActions() = default;
  ~PendingActions();
  PendingActions(const PendingActions &) = delete;
  PendingActions &operator=(const PendingActions &) = delete;

  /// The host thread is about to enqueue `action` (a literal), collective `number` of its
  /// communicator; the call may itself wait for the device. `transfer`: what it is if it is a send
  /// or a receive, else null.
  void begin(const char *action, std::int64_t number, const CollectiveRequest *transfer);
  /// It has been enqueued, on `stream`. Waits when there is no room, until the job has failed at
  /// the latest.
  cudaError_t enqueued(cudaStream_t stream, const base::Failure &failure);
  /// Forgets what is finished. The oldest action that is not, and how long it has been the oldest,
  /// in seconds; its name is null when there is none.
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
  const char *begun_ = nullptr; ///< what the host thread is enqueuing
  std::int64_t begunNumber_ = 0;
  CollectiveRequest begunRequest_{};
  std::uint64_t added_ = 0, finished_ = 0;
  double since_ = 0; ///< when the oldest became the oldest
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_PENDINGACTIONS_H
