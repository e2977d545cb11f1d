//===- CrossEntropy.cpp ---------------------------------------------------===//

#include "runtime/kernels/CrossEntropy.h"

#include "runtime/device/IndexRange.h"
#include "runtime/kernels/RowReduction.h"

#include <cmath>

namespace fsdp::rt::kernels {

namespace {

template <typename Label> std::size_t checked(Label label, std::size_t row, std::size_t classes) {
  if (label < 0 || static_cast<std::uint64_t>(label) >= classes)
    throw labelOutOfRange(row, label, classes);
  return static_cast<std::size_t>(label);
}

} // namespace

template <class T, typename Label>
void crossEntropy(LogitRows shape, const T *logits, const Label *labels, float *losses,
                  float *logSumExp) {
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const T *row = logits + r * shape.classes;
    const std::size_t label = checked(labels[r], r, shape.classes);
    const float top = largest(row, shape.classes);
    const double value = std::log(sumOfExponentials(row, shape.classes, top)) + double(top);
    if (logSumExp)
      logSumExp[r] = static_cast<float>(value);
    losses[r] = static_cast<float>(value - double(row[label]));
  }
}

template <class T, typename Label>
void crossEntropyGrad(LogitRows shape, const T *logits, const Label *labels, const float *logSumExp,
                      const float *upstream, T *gradients) {
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const T *row = logits + r * shape.classes;
    T *out = gradients + r * shape.classes;
    const std::size_t label = checked(labels[r], r, shape.classes);
    const float base = logSumExp[r], factor = upstream[r];
    // Of the label, before it may be overwritten; subtracted before it is rounded.
    const float ofLabel = factor * (vectorExp(float(row[label]) - base) - 1.0f);
#pragma omp simd
    for (std::size_t j = 0; j < shape.classes; ++j)
      out[j] = factor * vectorExp(float(row[j]) - base);
    out[label] = ofLabel;
  }
}

#define INSTANTIATE(T, Label)                                                                      \
  template void crossEntropy(LogitRows, const T *, const Label *, float *, float *);               \
  template void crossEntropyGrad(LogitRows, const T *, const Label *, const float *,               \
                                 const float *, T *);
INSTANTIATE(float, std::int32_t)
INSTANTIATE(float, std::int64_t)
INSTANTIATE(bf16, std::int32_t)
INSTANTIATE(bf16, std::int64_t)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
