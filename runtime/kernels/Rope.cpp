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
    if (values && shape.positions <= latest.positions && shape.width == latest.width &&
        shape.theta == latest.theta && isScaledAs(shape))
      return values;
    latest = shape;
    const std::size_t positions = shape.positions, width = shape.width;
    values = static_cast<float *>(workspace.reserve(positions * width * sizeof(float)));
    const auto magnitude = static_cast<float>(shape.magnitude);
    const RopeShape::Scale scale = shape.scale();
    const std::size_t half = width / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const auto pair = static_cast<double>(i);
      const double rate = shape.scaledRate(
          std::pow(shape.theta, -2.0 * pair / static_cast<double>(width)), pair, scale);
      for (std::size_t t = 0; t < positions; ++t) {
        const double angle = static_cast<double>(t) * rate;
        values[t * width + i] = static_cast<float>(std::cos(angle)) * magnitude;
        values[t * width + half + i] = static_cast<float>(std::sin(angle)) * magnitude;
      }
    }
    return values;
  }

private:
  bool isScaledAs(const RopeShape &shape) const {
    return shape.magnitude == latest.magnitude && shape.factor == latest.factor &&
           shape.ramp == latest.ramp && shape.from == latest.from && shape.to == latest.to;
  }

  Workspace workspace;
  RopeShape latest{};
  float *values = nullptr;
};

} // namespace

/// Rotates the pair (x[b, t, r, i], x[b, t, r, i + width / 2]) by t * theta^(-2 i / width), or that
/// scaled.
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
