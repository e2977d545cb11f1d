//===- Dropout.cpp --------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

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

/// Rows of the innermost extent, in the order of memory; `at` moves to the end of the processed
/// part.
template <class T>
void descend(const Mask &mask, const DropoutExtent *extents, std::size_t numExtents,
             std::uint64_t index, const T *x, T *y, std::size_t &at) {
  if (numExtents == 1) {
    mask.apply(index, extents->size, x + at, y + at);
    at += extents->size;
    return;
  }
  for (std::size_t i = 0; i < extents->size; ++i, index += extents->stride)
    descend(mask, extents + 1, numExtents - 1, index, x, y, at);
}

} // namespace

template <class T>
void dropout(double rate, std::uint64_t name, std::uint64_t first, const DropoutExtent *extents,
             std::size_t numExtents, const StepState &state, const T *x, T *y) {
  std::size_t at = 0;
  descend(Mask(rate, name, state), extents, numExtents, first, x, y, at);
}

template void dropout(double, std::uint64_t, std::uint64_t, const DropoutExtent *, std::size_t,
                      const StepState &, const float *, float *);
template void dropout(double, std::uint64_t, std::uint64_t, const DropoutExtent *, std::size_t,
                      const StepState &, const bf16 *, bf16 *);

} // namespace fsdp::rt::kernels
