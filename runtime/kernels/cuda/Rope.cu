//===- Rope.cu - rotary position embedding --------------------------------===//
//
// Floor: 2 s n bytes (s of an element, n elements). A thread takes a few pairs of one position and
// turns them in many vectors: the angle and its sine, which are taken in double up to the last
// step, are worth their price then.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <cmath>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 128;
constexpr std::size_t kVectorsAtOnce = 32; ///< of a position, that a thread walks over

/// Cosine and sine of position * theta^(-2 i / width) or, if that is scaled, of the scaled angle,
/// times the magnitude.
struct Rotation {
  float cosine, sine;
};
template <bool kScaled>
__device__ inline Rotation rotation(const RopeShape &shape, const RopeShape::Scale &scale,
                                    double position, double i, double logTheta) {
  double rate = exp2(-2 * i / double(shape.width) * logTheta);
  if (kScaled)
    rate = shape.scaledRate(rate, i, scale);
  const double angle = position * rate;
  // Whole turns are taken away in double.
  const double turns = rint(angle * 0.15915494309189533577);
  const auto rest = static_cast<float>(fma(turns, -6.283185307179586477, angle));
  if (!kScaled)
    return {cosf(rest), sinf(rest)};
  const auto magnitude = static_cast<float>(shape.magnitude);
  return {cosf(rest) * magnitude, sinf(rest) * magnitude};
}

/// `packs`: accesses of a half vector. `logTheta`: log2.
template <class T, int N, bool kScaled>
__global__ void __launch_bounds__(kThreads)
    turn(RopeShape shape, RopeShape::Scale scale, std::size_t packs, double logTheta, const T *x,
         T *y) {
  const std::size_t p = blockIdx.x * std::size_t(kThreads) + threadIdx.x;
  if (p >= shape.positions * packs)
    return;
  const std::size_t t = p / packs, i = p % packs * N, half = shape.width / 2;
  float cosines[N], sines[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const Rotation r = rotation<kScaled>(shape, scale, double(t), double(i + k), logTheta);
    cosines[k] = r.cosine;
    sines[k] = shape.inverse ? -r.sine : r.sine;
  }
  const std::size_t vectors = shape.blocks * shape.inner, first = blockIdx.y * kVectorsAtOnce;
  const std::size_t last = first + kVectorsAtOnce < vectors ? first + kVectorsAtOnce : vectors;
  std::size_t block = first / shape.inner, inner = first % shape.inner;
#pragma unroll 4
  for (std::size_t v = first; v < last; ++v) {
    const std::size_t at = ((block * shape.positions + t) * shape.inner + inner) * shape.width + i;
    if (++inner == shape.inner)
      inner = 0, ++block;
    const auto low = Packed<T, N>::load(x + at), high = Packed<T, N>::load(x + at + half);
    float lows[N], highs[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      lows[k] = low.get(k) * cosines[k] - high.get(k) * sines[k];
      highs[k] = high.get(k) * cosines[k] + low.get(k) * sines[k];
    }
    storeFloats(lows, y + at);
    storeFloats(highs, y + at + half);
  }
}

template <class T, bool kScaled>
cudaError_t launch(RopeShape shape, const T *x, T *y, cudaStream_t stream) {
  constexpr int N = kPack<T>;
  const std::size_t half = shape.width / 2;
  const bool vectors = half % N == 0 && aligned16(x, y);
  noteVectors(vectors);
  const std::size_t packs = vectors ? half / N : half;
  const std::size_t walks = ceilDiv(shape.blocks * shape.inner, kVectorsAtOnce);
  if (walks > 65535)
    return cudaErrorInvalidValue;
  return launchKernel(
      vectors ? turn<T, N, kScaled> : turn<T, 1, kScaled>,
      dim3(static_cast<unsigned>(ceilDiv<std::size_t>(shape.positions * packs, kThreads)),
           static_cast<unsigned>(walks)),
      kThreads, 0, stream, shape, shape.scale(), packs, std::log2(shape.theta), x, y);
}

/// A thread turns a pair at a given position.
template <class T>
__global__ void __launch_bounds__(kThreads)
    turnAt(RopeShape shape, RopeShape::Scale scale, double logTheta, const T *x,
           const std::int32_t *positions, T *y) {
  const std::size_t half = shape.width / 2;
  const std::size_t p = blockIdx.x * std::size_t(kThreads) + threadIdx.x;
  if (p >= shape.blocks * shape.positions * shape.inner * half)
    return;
  const std::size_t i = p % half, vector = p / half, row = vector / shape.inner;
  const std::size_t sample = row / shape.positions / shape.repeats;
  const std::int32_t position = positions[sample * shape.positions + row % shape.positions];
  Rotation r = rotation<true>(shape, scale, double(position), double(i), logTheta);
  if (shape.inverse)
    r.sine = -r.sine;
  const std::size_t at = vector * shape.width + i;
  const float low = toFloat(x[at]), high = toFloat(x[at + half]);
  y[at] = fromFloat<T>(low * r.cosine - high * r.sine);
  y[at + half] = fromFloat<T>(high * r.cosine + low * r.sine);
}

template <class T>
cudaError_t launchAt(RopeShape shape, const T *x, const std::int32_t *positions, T *y,
                     cudaStream_t stream) {
  const std::size_t pairs = shape.blocks * shape.positions * shape.inner * (shape.width / 2);
  return launchKernel(turnAt<T>, dim3(static_cast<unsigned>(ceilDiv<std::size_t>(pairs, kThreads))),
                      kThreads, 0, stream, shape, shape.scale(), std::log2(shape.theta), x,
                      positions, y);
}

template <class T> cudaError_t launch(RopeShape shape, const T *x, T *y, cudaStream_t stream) {
  const bool isScaled = shape.factor != 1 || shape.magnitude != 1;
  return isScaled ? launch<T, true>(shape, x, y, stream) : launch<T, false>(shape, x, y, stream);
}

} // namespace

cudaError_t rope(RopeShape shape, const float *x, float *y, cudaStream_t stream) {
  return launch(shape, x, y, stream);
}
cudaError_t rope(RopeShape shape, const bf16 *x, bf16 *y, cudaStream_t stream) {
  return launch(shape, x, y, stream);
}
cudaError_t rope(RopeShape shape, const float *x, const std::int32_t *positions, float *y,
                 cudaStream_t stream) {
  return launchAt(shape, x, positions, y, stream);
}
cudaError_t rope(RopeShape shape, const bf16 *x, const std::int32_t *positions, bf16 *y,
                 cudaStream_t stream) {
  return launchAt(shape, x, positions, y, stream);
}

} // namespace fsdp::rt
