//===- Softmax.cpp --------------------------------------------------------===//

#include "runtime/Softmax.h"

#include "runtime/RowReduction.h"

namespace fsdp::rt::kernels {

void softmax(SoftmaxRows shape, const float *x, float *y) {
  const std::size_t width = shape.width;
  for (std::size_t r = 0; r < shape.rows && width > 0; ++r, x += width, y += width) {
    const auto factor = static_cast<float>(1 / sumOfExponentials(x, width, largest(x, width), y));
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      y[j] *= factor;
  }
}

} // namespace fsdp::rt::kernels
