//===- StripeSum.h - reductions over rows in two stages ----------*- C++ -*-===//
//
// Those of generated kernels, gradients of norms and squares. Blocks have stripes of the rows and
// leave their results in the workspace; a second kernel of the launch combines the stripes. Which
// rows a stripe has, and the order of stripes, depends on sizes alone.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_STRIPESUM_H
#define FSDP_RUNTIME_KERNELS_CUDA_STRIPESUM_H

#include "runtime/kernels/cuda/BlockReduce.h"

#include <cstddef>

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

/// The second stage: reduces parts[0], parts[columns], ..., parts[(stripes - 1) * columns] where
/// `inside`, by those of a block of `Columns * Lanes` threads as `reduceLanes` does; the others get
/// `start`, which changes no result. To be called once a kernel, and not together with that.
template <class Op, int Columns, int Lanes, class T, class Part>
__device__ T combineStripes(T start, const Part *parts, std::size_t stripes, std::size_t columns,
                            bool inside) {
  if (inside)
#pragma unroll 8
    for (std::size_t stripe = threadIdx.x / Columns; stripe < stripes; stripe += Lanes)
      start = Op::apply(start, T(parts[stripe * columns]));
  return reduceLanes<Op, Columns, Lanes>(start);
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_STRIPESUM_H
