//===- Rope.h - rotary position embedding -----------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_ROPE_H
#define FSDP_RUNTIME_ROPE_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>

namespace fsdp::rt {

namespace kernels {
/// Rotates the pair (x[b, t, r, i], x[b, t, r, i + width / 2]) by t * theta^(-2 i / width).
/// Sines are taken in double and kept for the next call; x is float or bf16. In place is fine.
template <class T> void rope(RopeShape shape, const T *x, T *y);
} // namespace kernels

/// Each vector, turned as far as its position says.
template <class T>
void rope(Context &c, int stream, const char *name, RopeShape shape, Slice<T> x, Slice<T> y) {
  launch(
      c, stream, name, reads(x), writes(y),
      [shape](const T *x, T *y) { kernels::rope(shape, x, y); }, Work{"rope"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ROPE_H
