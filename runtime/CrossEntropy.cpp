//===- CrossEntropy.cpp ---------------------------------------------------===//

#include "runtime/CrossEntropy.h"

#include "runtime/Error.h"
#include "runtime/VectorMath.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

namespace {

/// Independent lanes let the compiler keep four vectors of maxima; a plain maximum it may not
/// reorder, as it would change which NaN is seen. A NaN in the row shows in the sum instead.
float largest(const float *row, std::size_t count) {
  constexpr std::size_t lanes = 64;
  float tops[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane)
    tops[lane] = row[0];
  std::size_t j = 0;
  for (; j + lanes <= count; j += lanes)
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane)
      tops[lane] = row[j + lane] > tops[lane] ? row[j + lane] : tops[lane];
  for (; j < count; ++j)
    tops[0] = row[j] > tops[0] ? row[j] : tops[0];
  float top = tops[0];
  for (float candidate : tops)
    top = candidate > top ? candidate : top;
  return top;
}

constexpr std::size_t kBlock = 512;

/// out[j] = exp(row[j] - top); returns their sum, taken in double. At most kBlock at a time, so
/// that the exponentials run in full vectors and are still near when they are summed.
double exponentials(const float *row, std::size_t count, float top, float *out) {
  double sum = 0;
#pragma omp simd
  for (std::size_t j = 0; j < count; ++j)
    out[j] = vectorExp(row[j] - top);
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < count; ++j)
    sum += double(out[j]);
  return sum;
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
    float block[kBlock];
    double sum = 0;
    for (std::size_t j = 0; j < shape.classes; j += kBlock)
      sum += exponentials(row + j, std::min(kBlock, shape.classes - j), top, block);
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
    for (std::size_t j = 0; j < shape.classes; j += kBlock)
      sum += exponentials(row + j, std::min(kBlock, shape.classes - j), top, out + j);
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
