//===- Rope.cpp - rotary position embedding -------------------------------===//

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

namespace {

/// Times the magnitude.
struct Rotation {
  float cosine, sine;
};
Rotation rotationAt(const RopeShape &shape, double position, double rate) {
  const auto magnitude = static_cast<float>(shape.magnitude);
  const double angle = position * rate;
  return {static_cast<float>(std::cos(angle)) * magnitude,
          static_cast<float>(std::sin(angle)) * magnitude};
}

/// The angle per position of pair `i`.
double rateOf(const RopeShape &shape, const RopeShape::Scale &scale, std::size_t i) {
  const auto pair = static_cast<double>(i);
  return shape.scaledRate(std::pow(shape.theta, -2.0 * pair / static_cast<double>(shape.width)),
                          pair, scale);
}

/// Rotates the `inner` vectors of a position.
template <class T>
void turn(const RopeShape &shape, const float *cosines, const float *sines, const T *x, T *y) {
  const std::size_t half = shape.width / 2;
  const float direction = shape.inverse ? -1.0f : 1.0f;
  for (std::size_t r = 0; r < shape.inner; ++r, x += shape.width, y += shape.width)
#pragma omp simd
    for (std::size_t i = 0; i < half; ++i) {
      const float low = x[i], high = x[i + half], sine = direction * sines[i];
      y[i] = low * cosines[i] - high * sine;
      y[i + half] = high * cosines[i] + low * sine;
    }
}

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
    const RopeShape::Scale scale = shape.scale();
    const std::size_t half = width / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double rate = rateOf(shape, scale, i);
      for (std::size_t t = 0; t < positions; ++t) {
        const Rotation rotation = rotationAt(shape, static_cast<double>(t), rate);
        values[t * width + i] = rotation.cosine;
        values[t * width + half + i] = rotation.sine;
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

const float *rotationsOf(const RopeShape &shape) {
  thread_local Rotations rotations;
  return rotations.of(shape);
}

/// Rotates the vectors of all blocks and positions, of which number i is at `positionOf(i)`.
template <class T, class PositionOf>
void turnAll(const RopeShape &shape, const T *x, T *y, const PositionOf &positionOf) {
  const float *table = rotationsOf(shape);
  const std::size_t step = shape.inner * shape.width;
  forEachPart(shape.blocks * shape.positions, step, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float *rotation = table + positionOf(i) * shape.width;
      turn(shape, rotation, rotation + shape.width / 2, x + i * step, y + i * step);
    }
  });
}

} // namespace

/// Rotates the pair (x[b, t, r, i], x[b, t, r, i + width / 2]) by t * theta^(-2 i / width), or that
/// scaled.
/// Sines are taken in double and kept for the next call.
template <class T> void rope(RopeShape shape, const T *x, T *y) {
  turnAll(shape, x, y, [&](std::size_t i) { return i % shape.positions; });
}

/// Positions in documents are among those of a whole row, whose sines are kept. Other ones are few
/// and change from call to call: of these nothing is kept.
template <class T> void ropeAt(RopeShape shape, const T *x, const std::int32_t *positions, T *y) {
  const std::size_t half = shape.width / 2, step = shape.inner * shape.width;
  const std::size_t samples = shape.blocks == 0 ? 0 : shape.blocks / shape.repeats;
  if (std::all_of(positions, positions + samples * shape.positions, [&](std::int32_t position) {
        return position >= 0 && std::size_t(position) < shape.positions;
      }))
    return turnAll(shape, x, y, [&](std::size_t i) {
      const std::size_t sample = i / shape.positions / shape.repeats;
      return std::size_t(positions[sample * shape.positions + i % shape.positions]);
    });
  auto *cosines = static_cast<float *>(
      Workspace::ofThread().reserve(shape.width * shape.positions * sizeof(float)));
  const RopeShape::Scale scale = shape.scale();
  for (std::size_t block = 0; block < shape.blocks; ++block) {
    // The first block of a sample: those that follow have the same positions.
    const std::int32_t *ofSample = positions + block / shape.repeats * shape.positions;
    for (std::size_t i = 0; i < half && block % shape.repeats == 0; ++i) {
      const double rate = rateOf(shape, scale, i);
      for (std::size_t t = 0; t < shape.positions; ++t) {
        const Rotation rotation = rotationAt(shape, ofSample[t], rate);
        cosines[t * shape.width + i] = rotation.cosine;
        cosines[t * shape.width + half + i] = rotation.sine;
      }
    }
    for (std::size_t t = 0; t < shape.positions; ++t, x += step, y += step)
      turn(shape, cosines + t * shape.width, cosines + t * shape.width + half, x, y);
  }
}

#define INSTANTIATE(T)                                                                             \
  template void rope(RopeShape, const T *, T *);                                                   \
  template void ropeAt(RopeShape, const T *, const std::int32_t *, T *);
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
