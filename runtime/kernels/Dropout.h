//===- Dropout.h - random elements become zero ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_DROPOUT_H
#define FSDP_RUNTIME_KERNELS_DROPOUT_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/StepState.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// y = x / (1 - rate) where the draw of an element in the step being performed is `rate` or more,
/// else 0; float or bf16. In place is fine.
template <class T>
void dropout(double rate, std::uint64_t name, std::uint64_t first, const DropoutExtent *extents,
             std::size_t numExtents, const StepState &state, const T *x, T *y);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_DROPOUT_H
