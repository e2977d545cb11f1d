//===- Grid.h - runs a kernel on the calling thread -------------------------------===//
#ifndef FSDP_EMULATOR_GRID_H
#define FSDP_EMULATOR_GRID_H

#include "cuda_runtime.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace emulator {

/// Bytes of shared memory that a block may have where it is asked for, by the setting `compute`.
std::size_t maxSharedBytes();

/// The bytes of a call (CallType).
inline std::shared_ptr<const char[]> copyOf(const void *call, std::size_t bytes) {
  std::shared_ptr<char[]> copy(new char[bytes]);
  std::memcpy(copy.get(), call, bytes);
  return copy;
}

struct Launch {
  dim3 grid, block;
  std::size_t sharedBytes;
  const void *kernel;
  std::shared_ptr<const char[]> call;
  CallType type;
  std::uint64_t number; ///< of this launch in the process, from 1

  /// The kernel, for the calling thread.
  void runThread() const { type.perform(call.get(), nullptr); }
  /// Addresses of the arguments in `call`.
  std::vector<const void *> arguments() const {
    std::vector<const void *> places(type.count);
    if (type.count)
      type.perform(call.get(), places.data());
    return places;
  }
};

/// Runs all blocks. Returns what went wrong, or "".
std::string runGrid(const Launch &launch);
/// "kernel NAME, block (..), thread (..)" of the calling thread, or "" outside of a kernel.
/// `buffer` holds the result; allocates nothing.
void describePlace(char *buffer, std::size_t size);
/// Whether an address lies beside the stack of a fiber of the calling thread.
bool beyondStack(const void *address);
/// Name of a kernel without its parameters, or its address where the program has no symbols.
std::string kernelName(const void *kernel);

} // namespace emulator

#endif // FSDP_EMULATOR_GRID_H
