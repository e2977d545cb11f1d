//===- RowReduction.h - maximum and sums of a row ---------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_ROWREDUCTION_H
#define FSDP_RUNTIME_KERNELS_ROWREDUCTION_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/numerics/VectorMath.h"

#include <algorithm>
#include <cstddef>

namespace fsdp::rt {

/// The largest of `count` >= 1 numbers (float or bf16). A NaN may be passed over: it shows in a
/// sum.
// Independent lanes let the compiler keep four vectors of maxima; a plain maximum it may not
// reorder, as it would change which NaN is seen.
template <class T> float largest(const T *row, std::size_t count) {
  constexpr std::size_t lanes = 64;
  float tops[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane)
    tops[lane] = row[0];
  std::size_t j = 0;
  for (; j + lanes <= count; j += lanes)
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float value = row[j + lane];
      tops[lane] = value > tops[lane] ? value : tops[lane];
    }
  for (; j < count; ++j)
    tops[0] = float(row[j]) > tops[0] ? float(row[j]) : tops[0];
  float top = tops[0];
  for (float candidate : tops)
    top = candidate > top ? candidate : top;
  return top;
}

/// The sum of exp(row[j] - top), in double.
template <class T> double sumOfExponentials(const T *row, std::size_t count, float top) {
  // In blocks, so that the exponentials run in full vectors and are still near when summed.
  constexpr std::size_t block = 512;
  float kept[block];
  double sum = 0;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(block, count - begin);
#pragma omp simd
    for (std::size_t j = 0; j < size; ++j)
      kept[j] = vectorExp(float(row[begin + j]) - top);
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < size; ++j)
      sum += double(kept[j]);
  }
  return sum;
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ROWREDUCTION_H
