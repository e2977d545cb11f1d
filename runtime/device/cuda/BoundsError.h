//===- BoundsError.h - indices out of range in kernels ----------*- C++ -*-===//
//
// A kernel cannot throw. One that finds a label or an id out of range stores it here, returns NaN,
// and continues; the host reads it with the step state after the segment.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_CUDA_BOUNDSERROR_H
#define FSDP_RUNTIME_DEVICE_CUDA_BOUNDSERROR_H

#include <cstdint>

namespace fsdp::rt {

/// In device memory, initially zero. One of the errors is stored.
struct BoundsError {
  enum Kind : std::uint32_t { None, Label, Id, Index };
  std::uint32_t count;
  std::uint32_t kind;
  std::uint64_t place; ///< row of the label, or number of the id or index
  std::int64_t got;
  std::uint64_t limit; ///< classes, rows of the table, or elements of the dimension
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_CUDA_BOUNDSERROR_H
