//===- CrossEntropy.cpp ---------------------------------------------------===//

#include "runtime/CrossEntropy.h"

#include "runtime/Error.h"
#include "runtime/VectorMath.h"

#include <cmath>

namespace fsdp::rt::kernels {

namespace {

float largest(const float *row, std::size_t count) {
  float value = row[0];
#pragma omp simd reduction(max : value)
  for (std::size_t j = 0; j < count; ++j)
    value = row[j] > value ? row[j] : value;
  return value;
}

template <typename Label> std::size_t checked(Label label, std::size_t row, std::size_t classes) {
  if (label < 0 || static_cast<std::uint64_t>(label) >= classes)
    throw Error(format("label of row %zu is %lld, expected 0 to %zu; correct the data or the "
                       "model's number of classes",
                       row, static_cast<long long>(label), classes - 1));
  return static_cast<std::size_t>(label);
}

} // namespace

template <typename Label>
void crossEntropy(LogitRows shape, const float *logits, const Label *labels, float *losses) {
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const float *row = logits + r * shape.classes;
    const std::size_t label = checked(labels[r], r, shape.classes);
    const float top = largest(row, shape.classes);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < shape.classes; ++j)
      sum += double(vectorExp(row[j] - top));
    losses[r] = static_cast<float>(std::log(sum) + (double(top) - double(row[label])));
  }
}

template <typename Label>
void crossEntropyGrad(LogitRows shape, const float *logits, const Label *labels,
                      const float *upstream, float *gradients) {
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const float *row = logits + r * shape.classes;
    float *out = gradients + r * shape.classes;
    const std::size_t label = checked(labels[r], r, shape.classes);
    const float top = largest(row, shape.classes);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < shape.classes; ++j) {
      const float value = vectorExp(row[j] - top);
      out[j] = value;
      sum += double(value);
    }
    const auto factor = static_cast<float>(upstream[r] / sum);
#pragma omp simd
    for (std::size_t j = 0; j < shape.classes; ++j)
      out[j] *= factor;
    out[label] -= upstream[r];
  }
}

template void crossEntropy(LogitRows, const float *, const std::int32_t *, float *);
template void crossEntropy(LogitRows, const float *, const std::int64_t *, float *);
template void crossEntropyGrad(LogitRows, const float *, const std::int32_t *, const float *,
                               float *);
template void crossEntropyGrad(LogitRows, const float *, const std::int64_t *, const float *,
                               float *);

} // namespace fsdp::rt::kernels
