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

/// N times `value`.
template <class T, int N> __device__ Vector<T, N> repeated(T value) {
  Vector<T, N> vector;
#pragma unroll
  for (int i = 0; i < N; ++i)
    vector[i] = value;
  return vector;
}

/// Reduces each of N numbers over those threads of a block of `Columns * Lanes` (whole warps) that
/// have the same place among `Columns` neighbours, a power of two; the first of them get the
/// results. The order depends on the sizes alone. To be called once a kernel.
template <class Op, int Columns, int Lanes, class T, int N>
__device__ Vector<T, N> reduceLanes(Vector<T, N> values) {
  constexpr int kInWarp = Columns < int(kWarp) ? Columns : int(kWarp); // of a warp's results
  constexpr int kParts = Columns * Lanes / (Columns < int(kWarp) ? int(kWarp) : Columns);
  __shared__ T parts[kParts][N][Columns];
#pragma unroll
  for (int distance = kWarp / 2; distance >= kInWarp; distance /= 2)
#pragma unroll
    for (int i = 0; i < N; ++i)
      values[i] = Op::apply(values[i], __shfl_xor_sync(kAllLanes, values[i], distance));
  if (kParts == 1)
    return values;
  const int part = threadIdx.x / (Columns * Lanes / kParts), column = threadIdx.x % Columns;
  if (threadIdx.x % kWarp < kInWarp)
#pragma unroll
    for (int i = 0; i < N; ++i)
      parts[part][i][column] = values[i];
  __syncthreads();
  if (threadIdx.x < Columns)
#pragma unroll
    for (int p = 1; p < kParts; ++p)
#pragma unroll
      for (int i = 0; i < N; ++i)
        values[i] = Op::apply(values[i], parts[p][i][column]);
  return values;
}
template <class Op, int Columns, int Lanes, class T> __device__ T reduceLanes(T value) {
  return reduceLanes<Op, Columns, Lanes>(repeated<T, 1>(value))[0];
}

/// Reduces parts[0], parts[columns], ..., parts[(Parts - 1) * columns] where `inside`, by those of
/// a block of `Columns * Lanes` threads as `reduceLanes` does; the others get `start`, which
/// changes no result. To be called once a kernel, and not together with that.
template <class Op, int Columns, int Lanes, int Parts, class T>
__device__ T combineParts(T start, const T *parts, std::size_t columns, bool inside) {
  if (inside)
#pragma unroll 8
    for (int part = threadIdx.x / Columns; part < Parts; part += Lanes)
      start = Op::apply(start, parts[part * columns]);
  return reduceLanes<Op, Columns, Lanes>(start);
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
