//===- Dropout.cpp --------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workers.h"
#include "runtime/numerics/Random.h"

#include <algorithm>

namespace fsdp::rt::kernels {

namespace {

/// Draws that are made at once.
constexpr std::size_t kDraws = 4 * Random::kLanes;

class Mask {
public:
  Mask(double rate, std::uint64_t name, const StepState &state)
      : random(state.seed, name, static_cast<std::uint64_t>(state.step) + 1),
        threshold(dropThreshold(rate)), scale(static_cast<float>(1 / (1 - rate))) {}

  /// `count` elements whose indices begin with `index`.
  template <class T> void apply(std::uint64_t index, std::size_t count, const T *x, T *y) const {
    while (count > 0) {
      std::uint32_t words[4][Random::kLanes], draws[kDraws];
      random.words(index / 4, words);
#pragma omp simd
      for (std::size_t group = 0; group < Random::kLanes; ++group) {
        std::uint32_t *to = draws + 4 * group;
        to[0] = words[0][group] >> 8, to[1] = words[1][group] >> 8;
        to[2] = words[2][group] >> 8, to[3] = words[3][group] >> 8;
      }
      const std::size_t skip = index % 4, now = std::min(count, kDraws - skip);
      // A draw of [0, 1) is a multiple of 2^-24.
#pragma omp simd
      for (std::size_t i = 0; i < now; ++i)
        y[i] = draws[skip + i] >= threshold ? float(x[i]) * scale : 0.0f;
      index += now, count -= now, x += now, y += now;
    }
  }

private:
  Random random;
  std::uint32_t threshold;
  float scale;
};

/// The rows [begin, end) of the innermost extent, in the order of memory; `index` is that of the
/// first row of all.
template <class T>
void applyToRows(const Mask &mask, const DropoutExtent *extents, std::size_t numExtents,
                 std::uint64_t index, std::size_t begin, std::size_t end, const T *x, T *y) {
  const DropoutExtent &inner = extents[numExtents - 1];
  for (std::size_t row = begin; row < end; ++row) {
    std::uint64_t at = index;
    std::size_t rest = row;
    for (std::size_t e = numExtents - 1; e-- > 0; rest /= extents[e].size)
      at += rest % extents[e].size * extents[e].stride;
    mask.apply(at, inner.size, x + row * inner.size, y + row * inner.size);
  }
}

} // namespace

template <class T>
void dropout(double rate, std::uint64_t name, std::uint64_t first, const DropoutExtent *extents,
             std::size_t numExtents, const StepState &state, const T *x, T *y) {
  const Mask mask(rate, name, state);
  const std::size_t width = extents[numExtents - 1].size;
  if (numExtents == 1)
    return forEachPart(width, 1, kDraws, [&](std::size_t begin, std::size_t end) {
      mask.apply(first + begin, end - begin, x + begin, y + begin);
    });
  std::size_t rows = 1;
  for (std::size_t e = 0; e + 1 < numExtents; ++e)
    rows *= extents[e].size;
  forEachPart(rows, width, [&](std::size_t begin, std::size_t end) {
    applyToRows(mask, extents, numExtents, first, begin, end, x, y);
  });
}

template void dropout(double, std::uint64_t, std::uint64_t, const DropoutExtent *, std::size_t,
                      const StepState &, const float *, float *);
template void dropout(double, std::uint64_t, std::uint64_t, const DropoutExtent *, std::size_t,
                      const StepState &, const bf16 *, bf16 *);

} // namespace fsdp::rt::kernels
