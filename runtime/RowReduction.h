//===- RowReduction.h - maximum and sums of a row ---------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_ROWREDUCTION_H
#define FSDP_RUNTIME_ROWREDUCTION_H

#include "runtime/VectorMath.h"

#include <algorithm>
#include <cstddef>

namespace fsdp::rt {

/// The largest of `count` >= 1 numbers. A NaN may be passed over: it shows in a sum.
// Independent lanes let the compiler keep four vectors of maxima; a plain maximum it may not
// reorder, as it would change which NaN is seen.
inline float largest(const float *row, std::size_t count) {
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

/// The sum of exp(row[j] - top), in double. The exponentials are left in `values`, unless it is
/// null.
inline double sumOfExponentials(const float *row, std::size_t count, float top, float *values) {
  // In blocks, so that the exponentials run in full vectors and are still near when summed.
  constexpr std::size_t block = 512;
  float kept[block];
  double sum = 0;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(block, count - begin);
    float *to = values ? values + begin : kept;
#pragma omp simd
    for (std::size_t j = 0; j < size; ++j)
      to[j] = vectorExp(row[begin + j] - top);
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < size; ++j)
      sum += double(to[j]);
  }
  return sum;
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ROWREDUCTION_H
