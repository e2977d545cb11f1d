//===- Collectives.h - collectives between devices ------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_COLLECTIVES_H
#define FSDP_RUNTIME_COMM_CUDA_COLLECTIVES_H

#include "runtime/comm/cuda/Comm.h"
#include "runtime/comm/cuda/PendingActions.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A collective that a graph performs. A launch records `done` after it.
struct CapturedCollective {
  int communicator = 0;
  const char *action = nullptr; ///< a literal
  CollectiveRequest request{};  ///< of a transfer
  EventRef done;
};
/// Those of a graph, in the order of the host's calls.
using CapturedCollectives = std::vector<CapturedCollective>;

/// The communicators of one rank, and the memory of its arena.
class Collectives {
public:
  virtual ~Collectives() = default;

  /// Connects all ranks. Called once, first; the monitor runs already.
  virtual void connect() {}
  /// Device memory for the arena, in which a buffer has the same offset on every rank. Called once;
  /// freed with the object.
  virtual std::byte *allocateArena(std::size_t bytes) = 0;

  /// Sets up the communicators of a program of several roles, on `stream`. Called once, after the
  /// arena is allocated.
  virtual void setUp(cudaStream_t) {}

  /// Communicator `index` of the program.
  virtual CollectiveBackend &communicator(int index) = 0;

  /// Collectives of this thread are captured into a graph until endCapture(), which returns them.
  /// They do not count as enqueued until the graph is launched.
  virtual void beginCapture() {}
  virtual CapturedCollectives endCapture() { return {}; }
  /// A graph with these collectives is launched, and has been.
  virtual void launching(const CapturedCollectives &) {}
  virtual void launched(const CapturedCollectives &) {}

  /// Throws if there is an asynchronous failure, or a collective that does not complete in time.
  /// Called by the monitor's thread.
  virtual void inspect() = 0;
  /// Ends the device's waits for other ranks where possible, as soon as the host thread is not in a
  /// call that uses the communicators. Where that is not possible (gathers by copy engines) it does
  /// nothing, and the job's watchdog ends the process. Called by the monitor's thread after the job
  /// has failed.
  virtual void abandon() noexcept = 0;
  /// Bytes of scratch memory.
  virtual std::size_t workspaceBytes() const = 0;
  /// Describes how collectives are performed; may be empty.
  virtual std::string describe() const { return ""; }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_COLLECTIVES_H
