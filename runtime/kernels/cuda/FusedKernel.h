//===- FusedKernel.h - what generated kernels are made of --------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_FUSEDKERNEL_H
#define FSDP_RUNTIME_KERNELS_CUDA_FUSEDKERNEL_H

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Update.h"
#include "runtime/program/ArenaSpan.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// N neighbours in memory, moved by one or two instructions of 16 bytes.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Vector {
  T element[N];
  __device__ T &operator[](int i) { return element[i]; }
  __device__ const T &operator[](int i) const { return element[i]; }
};

/// `from` and `to` are aligned to the vector's size, at most 16 bytes.
template <int N, class T> __device__ Vector<T, N> load(const T *from) {
  return *reinterpret_cast<const Vector<T, N> *>(from);
}
template <int N, class T> __device__ void store(T *to, const Vector<T, N> &vector) {
  *reinterpret_cast<Vector<T, N> *>(to) = vector;
}

/// The larger and the smaller of two numbers; NaN if either is.
template <class T> __device__ T maximum(T a, T b) { return a != a ? a : (a > b ? a : b); }
template <class T> __device__ T minimum(T a, T b) { return a != a ? a : (a < b ? a : b); }

/// `maximum` for warpReduce and its like.
struct Maximum {
  template <class T> __device__ static T apply(T a, T b) { return maximum(a, b); }
};

/// Reduces over the block; all threads get the result. To be called once a kernel.
template <class Op, class T> __device__ T reduceBlock(T value) {
  __shared__ T scratch[kMaxWarps];
  return blockReduce<Op>(value, scratch);
}

/// Reduces over those threads of a block of `Columns * Lanes` that have the same place among
/// `Columns` neighbours, in the order of the threads; the first of them get the results. To be
/// called once a kernel.
template <class Op, int Columns, int Lanes, class T> __device__ T reduceLanes(T value) {
  __shared__ T parts[Columns * Lanes];
  parts[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x < Columns)
    for (int lane = 1; lane < Lanes; ++lane)
      value = Op::apply(value, parts[lane * Columns + threadIdx.x]);
  return value;
}

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

/// Where the largest number of each row stands; the first of several. As on the CPU, a NaN is never
/// larger, and nothing is larger than a NaN that comes first.
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
