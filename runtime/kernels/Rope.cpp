//===- Rope.cpp - rotary position embedding -------------------------------===//

#include "runtime/device/Workspace.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/numerics/BFloat16.h"

#include <cmath>

namespace fsdp::rt::kernels {

namespace {

/// Cosines and sines of every position and pair, [positions][2][width / 2]. Each thread keeps those
/// of its latest shape: layers of a model share them.
class Rotations {
public:
  const float *of(RopeShape shape) {
    if (values && shape.positions <= positions && shape.width == width && shape.theta == theta)
      return values;
    positions = shape.positions, width = shape.width, theta = shape.theta;
    values = static_cast<float *>(workspace.reserve(positions * width * sizeof(float)));
    const std::size_t half = width / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double rate =
          std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      for (std::size_t t = 0; t < positions; ++t) {
        const double angle = static_cast<double>(t) * rate;
        values[t * width + i] = static_cast<float>(std::cos(angle));
        values[t * width + half + i] = static_cast<float>(std::sin(angle));
      }
    }
    return values;
  }

private:
  Workspace workspace;
  std::size_t positions = 0, width = 0;
  double theta = 0;
  float *values = nullptr;
};

} // namespace

/// Rotates the pair (x[b, t, r, i], x[b, t, r, i + width / 2]) by t * theta^(-2 i / width).
/// Sines are taken in double and kept for the next call.
template <class T> void rope(RopeShape shape, const T *x, T *y) {
  thread_local Rotations rotations;
  const float *table = rotations.of(shape);
  const std::size_t half = shape.width / 2;
  const float direction = shape.inverse ? -1.0f : 1.0f;
  for (std::size_t b = 0; b < shape.blocks; ++b)
    for (std::size_t t = 0; t < shape.positions; ++t) {
      const float *cosines = table + t * shape.width, *sines = cosines + half;
      for (std::size_t r = 0; r < shape.inner; ++r, x += shape.width, y += shape.width)
#pragma omp simd
        for (std::size_t i = 0; i < half; ++i) {
          const float low = x[i], high = x[i + half], sine = direction * sines[i];
          y[i] = low * cosines[i] - high * sine;
          y[i + half] = high * cosines[i] + low * sine;
        }
    }
}

template void rope(RopeShape, const float *, float *);
template void rope(RopeShape, const bf16 *, bf16 *);

} // namespace fsdp::rt::kernels
