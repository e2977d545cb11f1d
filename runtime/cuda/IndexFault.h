//===- IndexFault.h - what a kernel found that numbers nothing ---*- C++ -*-===//
//
// A kernel cannot throw. One that finds a label or an id out of range writes it down, gives NaN, and
// goes on; the host reads the note when the segment has ended, with the step state.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_CUDA_INDEXFAULT_H
#define FSDP_RUNTIME_CUDA_INDEXFAULT_H

#include <cuda_runtime.h>

#include <cstdint>

namespace fsdp::rt {

/// In memory of the device, zeros at first. One of those found is kept.
struct IndexFault {
  enum Kind : std::uint32_t { None, Label, Id };
  std::uint32_t count;
  std::uint32_t kind;
  std::uint64_t place; ///< row of the label, or number of the id
  std::int64_t got;
  std::uint64_t limit; ///< classes, or rows of the table
};

namespace device {

__device__ inline void noteFault(IndexFault *fault, IndexFault::Kind kind, std::uint64_t place,
                                 std::int64_t got, std::uint64_t limit) {
  if (!fault || atomicAdd(&fault->count, 1u) > 0)
    return;
  fault->kind = kind;
  fault->place = place;
  fault->got = got;
  fault->limit = limit;
}

} // namespace device

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_INDEXFAULT_H
