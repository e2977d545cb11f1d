//===- Rope.h - rotary position embedding -----------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_ROPE_H
#define FSDP_RUNTIME_ROPE_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>

namespace fsdp::rt {

namespace kernels {
/// Rotates the pair (x[b, t, i], x[b, t, i + width / 2]) by the angle t * theta^(-2 i / width).
/// Sines are taken in double and kept for the next call. In place is fine.
void rope(RopeShape shape, const float *x, float *y);
} // namespace kernels

/// Each vector, turned as far as its position says.
inline void rope(Context &c, int stream, const char *name, RopeShape shape, Slice<float> x,
                 Slice<float> y) {
  launch(c, stream, name, reads(x), writes(y),
         [shape](const float *x, float *y) { kernels::rope(shape, x, y); });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ROPE_H
