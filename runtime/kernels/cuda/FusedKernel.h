//===- FusedKernel.h - parts of generated kernels ---------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_FUSEDKERNEL_H
#define FSDP_RUNTIME_KERNELS_CUDA_FUSEDKERNEL_H

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/StripeSum.h"
#include "runtime/kernels/cuda/Update.h"
#include "runtime/program/ArenaSpan.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// The larger and the smaller of two numbers; NaN if either is.
template <class T> __device__ T maximum(T a, T b) { return a != a ? a : (a > b ? a : b); }
template <class T> __device__ T minimum(T a, T b) { return a != a ? a : (a < b ? a : b); }

/// `maximum` for warpReduce and its like.
struct Maximum {
  template <class T> __device__ static T apply(T a, T b) { return maximum(a, b); }
};

/// GELU in its form with tanh, x/2 (1 + tanh(a x + b x^3)), for results in bf16: x times the
/// logistic function of twice the argument, 1 / (1 + exp(-2 (a x + b x^3))), by which small results
/// are as exact as others. Those below 1e-35 may be 0.
class Logistic {
public:
  __device__ explicit Logistic(float x)
      : square(fminf(x * x, 1e4f)), // farther out the function is 0 or 1
        value(reciprocal(
            1 + powerOfTwo(x * fmaf(square, -2 * kCubic * kLog2E, -2 * kLinear * kLog2E)))) {}
  __device__ float get() const { return value; }
  /// That of GELU, divided by its cotangent.
  __device__ float gradient(float x) const {
    return fmaf(value * (1 - value) * x, fmaf(square, 6 * kCubic, 2 * kLinear), value);
  }

private:
  static constexpr float kLinear = 0.797884561f, kCubic = 0.0356774081f, kLog2E = 1.44269504f;
  float square, value;
};
__device__ inline float fastGelu(float x) { return x * Logistic(x).get(); }
/// d times the derivative at x.
__device__ inline float fastGeluGradient(float x, float d) { return d * Logistic(x).gradient(x); }

/// to[0], ..., to[count - 1] = value
template <class T> __global__ void fillKernel(T *to, std::size_t count, T value) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    to[i] = value;
}
template <class T> cudaError_t fill(T *to, std::size_t count, T value, cudaStream_t stream) {
  return launchKernel(fillKernel<T>, dim3(unsigned((count + 255) / 256)), 256, 0, stream, to, count,
                      value);
}

/// The position of the largest number of each row; the first of several. As on the CPU, a NaN is
/// never larger, and nothing is larger than a NaN that comes first.
template <class T, class Index>
__global__ void argmaxKernel(std::int64_t columns, const T *x, Index *y) {
  const T *row = x + std::int64_t(blockIdx.x) * columns;
  std::int64_t best = 0;
  if (row[0] == row[0])
    for (std::int64_t j = threadIdx.x; j < columns; j += kWarp)
      best = row[j] > row[best] ? j : best;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::int64_t other = __shfl_xor_sync(kAllLanes, best, distance);
    if (row[other] > row[best] || (row[other] == row[best] && other < best))
      best = other;
  }
  if (threadIdx.x == 0)
    y[blockIdx.x] = Index(best);
}
template <class T, class Index>
cudaError_t argmax(std::int64_t rows, std::int64_t columns, const T *x, Index *y,
                   cudaStream_t stream) {
  return launchKernel(argmaxKernel<T, Index>, dim3(unsigned(rows)), kWarp, 0, stream, columns, x,
                      y);
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_FUSEDKERNEL_H
