//===- Dropout.h - launches of kernels/Dropout.h -------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_DROPOUT_H
#define FSDP_RUNTIME_LAUNCHES_DROPOUT_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Dropout.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

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

#endif // FSDP_RUNTIME_LAUNCHES_DROPOUT_H
