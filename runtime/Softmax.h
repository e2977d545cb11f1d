//===- Softmax.h - rows of probabilities ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_SOFTMAX_H
#define FSDP_RUNTIME_SOFTMAX_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>

namespace fsdp::rt {

namespace kernels {
/// y[r, j] = exp(x[r, j]) / sum over k of exp(x[r, k]). In place is fine.
void softmax(SoftmaxRows shape, const float *x, float *y);
} // namespace kernels

/// The softmax of each row.
inline void softmax(Context &c, int stream, const char *name, SoftmaxRows shape, Slice<float> x,
                    Slice<float> y) {
  launch(c, stream, name, reads(x), writes(y),
         [shape](const float *x, float *y) { kernels::softmax(shape, x, y); });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_SOFTMAX_H
