//===- Softmax.h - rows of probabilities ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_SOFTMAX_H
#define FSDP_RUNTIME_SOFTMAX_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>

namespace fsdp::rt {

namespace kernels {
/// y[r, j] = exp(x[r, j]) / sum over k of exp(x[r, k]), for float or bf16. In place is fine.
template <class T> void softmax(SoftmaxRows shape, const T *x, T *y);
} // namespace kernels

/// The softmax of each row.
template <class T>
void softmax(Context &c, int stream, const char *name, SoftmaxRows shape, Slice<T> x, Slice<T> y) {
  launch(
      c, stream, name, reads(x), writes(y),
      [shape](const T *x, T *y) { kernels::softmax(shape, x, y); }, Work{"softmax"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_SOFTMAX_H
