//===- BoundsError.h - what a kernel found that numbers nothing ---*- C++ -*-===//
//
// A kernel cannot throw. One that finds a label or an id out of range writes it down, gives NaN,
// and goes on; the host reads the note when the segment has ended, with the step state.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_CUDA_BOUNDSERROR_H
#define FSDP_RUNTIME_DEVICE_CUDA_BOUNDSERROR_H

#include <cstdint>

namespace fsdp::rt {

/// In memory of the device, zeros at first. One of those found is kept.
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
