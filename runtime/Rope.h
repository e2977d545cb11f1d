//===- Rope.h - rotary position embedding -----------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_ROPE_H
#define FSDP_RUNTIME_ROPE_H

#include "runtime/Launch.h"

#include <cstddef>

namespace fsdp::rt {

/// `blocks` sequences of `positions` vectors of `width` numbers; the width is even.
struct RopeShape {
  std::size_t blocks;
  std::size_t positions;
  std::size_t width;
  double theta;
  bool inverse; ///< rotate back, as the gradient does
};

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
