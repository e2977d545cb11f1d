//===- ScanSum.cpp - cumulative sums --------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workers.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>

namespace fsdp::rt::kernels {

namespace {

constexpr std::size_t kLinesAtOnce = 256; ///< whose sums stay in the first cache

/// `count` adjacent lines. The number at `i` of each is read before its sum is written.
template <bool exclusive, class T>
void scanLines(ScanShape shape, std::size_t count, const T *x, T *y) {
  float sums[kLinesAtOnce] = {};
  for (std::size_t i = 0; i < shape.size; ++i) {
    const std::size_t at = (shape.reverse ? shape.size - 1 - i : i) * shape.inner;
#pragma omp simd
    for (std::size_t line = 0; line < count; ++line) {
      const float before = sums[line], after = before + float(x[at + line]);
      sums[line] = after;
      y[at + line] = exclusive ? before : after;
    }
  }
}

} // namespace

/// Sums are formed in float, one number after another. Lines are shared by threads, not cut.
template <class T> void scan_sum(ScanShape shape, const T *x, T *y) {
  const auto scan = shape.exclusive ? scanLines<true, T> : scanLines<false, T>;
  const std::size_t block = shape.size * shape.inner;
  const std::size_t groups = (shape.inner + kLinesAtOnce - 1) / kLinesAtOnce;
  const std::size_t lines = std::min(kLinesAtOnce, shape.inner);
  forEachPart(shape.outer * groups, shape.size * lines, [&](std::size_t begin, std::size_t end) {
    for (std::size_t group = begin; group < end; ++group) {
      const std::size_t line = group % groups * kLinesAtOnce, at = group / groups * block + line;
      scan(shape, std::min(kLinesAtOnce, shape.inner - line), x + at, y + at);
    }
  });
}

template void scan_sum(ScanShape, const float *, float *);
template void scan_sum(ScanShape, const bf16 *, bf16 *);

} // namespace fsdp::rt::kernels
