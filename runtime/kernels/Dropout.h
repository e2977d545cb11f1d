//===- Dropout.h - random elements become zero ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_DROPOUT_H
#define FSDP_RUNTIME_KERNELS_DROPOUT_H

#include "runtime/execution/Launch.h"
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

/// Each element is kept, and scaled up, or dropped, whatever the mesh.
template <std::size_t N, class T>
void dropout(Context &c, int stream, const char *name, DropoutMask<N> mask,
             ArenaSpan<StepState> state, ArenaSpan<T> x, ArenaSpan<T> y) {
  launch(
      c, stream, name, reads(state, x), writes(y),
      [mask](const StepState *state, const T *x, T *y) {
        const std::int64_t first = mask.first + state->microbatch * mask.microbatch;
        kernels::dropout(mask.rate, mask.name, static_cast<std::uint64_t>(first), mask.extents, N,
                         *state, x, y);
      },
      Work{"dropout"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_DROPOUT_H
