//===- RendezvousSocket.h - passes memory to ranks of a machine -----------===//
#ifndef FSDP_RUNTIME_JOB_RENDEZVOUSSOCKET_H
#define FSDP_RUNTIME_JOB_RENDEZVOUSSOCKET_H

#include "base/Descriptor.h"
#include "runtime/job/RunIdentity.h"

#include <optional>
#include <string>

namespace fsdp::rt {

/// A Unix socket on which the first rank of a machine passes the descriptor of its memory file to
/// the other ranks. The socket's name is abstract, so that nothing stays behind when the process is
/// killed, and the memory has no name, so that the size of /dev/shm does not limit the arenas.
/// Both sides accept processes of their own user only.
class RendezvousSocket {
public:
  /// Listens under the name for `key`, a text that identifies the job; `identity` describes how
  /// this rank was started. `memory` must outlive the object. Error: another job with this key is
  /// starting, or another user holds the name.
  RendezvousSocket(const std::string &key, const base::Descriptor &memory,
                   const RunIdentity &identity);

  /// Passes the memory to ranks that connect within `seconds`.
  void serve(double seconds) const;

private:
  base::Descriptor listener_;
  const base::Descriptor &memory_;
  std::string message_;
};

/// The message of the first rank.
struct SharedMemory {
  base::Descriptor memory;
  RunIdentity identity; ///< how the first rank was started
};

/// Gets the memory of the first rank of the job `key`, waiting up to `seconds` for its answer.
/// Nothing: it does not listen yet. Error: another user holds the name.
std::optional<SharedMemory> receiveMemory(const std::string &key, double seconds);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_RENDEZVOUSSOCKET_H
