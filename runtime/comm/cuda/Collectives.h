//===- Collectives.h - the ways in which devices talk -----------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_COLLECTIVES_H
#define FSDP_RUNTIME_COMM_CUDA_COLLECTIVES_H

#include "runtime/comm/cuda/Comm.h"

#include <memory>
#include <string>

namespace fsdp::rt {

/// The communicators of one rank, and the memory that they work on best.
class Collectives {
public:
  virtual ~Collectives() = default;

  /// Joins all ranks; the monitor already looks on. Called once, first of all.
  virtual void connect() {}
  /// Memory of the device for the arena: at the same place from its start on every rank.
  /// Called once; the memory goes with the object.
  virtual std::byte *allocateArena(std::size_t bytes) = 0;

  /// Communicator `index` of the program; this rank's part of it.
  virtual CollectiveBackend &communicator(int index) = 0;

  /// Throws what went wrong since: an asynchronous failure, a collective that does not end. Called
  /// by the monitor's thread.
  virtual void inspect() = 0;
  /// Lets nothing on the device wait for other ranks any more where that can be, as soon as the
  /// host's thread is in no call that uses what this gives up. Where it cannot (gathers by copy
  /// engines), nothing is done, and the job's watchdog ends the process. Called by the monitor's
  /// thread, once the job has failed.
  virtual void abandon() noexcept = 0;
  /// Bytes of scratch memory.
  virtual std::size_t workspaceBytes() const = 0;
  /// How collectives are made, for people; "" where there is nothing to say.
  virtual std::string describe() const { return ""; }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_COLLECTIVES_H
