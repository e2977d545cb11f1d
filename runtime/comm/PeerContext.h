//===- PeerContext.h - the rank that a communicator serves --------*- C++ -*-===//

#ifndef FSDP_RUNTIME_COMM_PEERCONTEXT_H
#define FSDP_RUNTIME_COMM_PEERCONTEXT_H

#include "base/Failure.h"

#include <atomic>
#include <cstddef>

namespace fsdp::rt {

class FlightTrack;

/// The rank that a communicator serves. Outlives its communicators.
struct PeerContext {
  int rank = 0; ///< in the world
  /// This rank's arena: zero at start, 64-byte aligned.
  std::byte *arena = nullptr;
  std::size_t arenaBytes = 0;
  /// The job's first error.
  base::Failure *failure = nullptr;
  /// The records of the latest actions of the host thread, followed by those of the streams.
  FlightTrack *flight = nullptr;
  /// Longest wait for other ranks, in seconds.
  double timeoutSeconds = 0;
  /// Set while the rank's context closes: the rank then stops waiting for others.
  std::atomic<bool> closing{false};

  /// Throws `Aborted` if the job has failed or this rank closes; called by waits for other ranks.
  void check() const {
    failure->check();
    if (closing.load(std::memory_order_relaxed))
      throw base::Aborted("the rank is leaving");
  }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_PEERCONTEXT_H
