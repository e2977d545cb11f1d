//===- Softmax.cpp - rows of probabilities --------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workers.h"
#include "runtime/kernels/RowReduction.h"
#include "runtime/numerics/BFloat16.h"

namespace fsdp::rt::kernels {

/// y[r, j] = exp(x[r, j]) / sum over k of exp(x[r, k]).
template <class T> void softmax(SoftmaxRows shape, const T *x, T *y) {
  const std::size_t width = shape.width;
  if (width == 0)
    return;
  forEachPart(shape.rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const T *from = x + r * width;
      T *to = y + r * width;
      // Computed twice rather than kept: an exponential costs less than a rounding to bf16 would.
      const float top = largest(from, width);
      const auto factor = static_cast<float>(1 / sumOfExponentials(from, width, top));
#pragma omp simd
      for (std::size_t j = 0; j < width; ++j)
        to[j] = vectorExp(float(from[j]) - top) * factor;
    }
  });
}

template void softmax(SoftmaxRows, const float *, float *);
template void softmax(SoftmaxRows, const bf16 *, bf16 *);

} // namespace fsdp::rt::kernels
