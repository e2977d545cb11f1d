//===- BlockReduce.h - sums and maxima over warps and blocks -----*- C++ -*-===//
//
// In a fixed order: results are the same bits in every run. All threads take part and all get the
// result. A block has whole warps, at most 32.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_BLOCKREDUCE_H
#define FSDP_RUNTIME_KERNELS_CUDA_BLOCKREDUCE_H

#include <cuda_runtime.h>

namespace fsdp::rt::device {

constexpr unsigned kWarp = 32, kMaxWarps = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct Plus {
  template <class T> __device__ static T apply(T a, T b) { return a + b; }
};
struct Larger {
  template <class T> __device__ static T apply(T a, T b) { return a > b ? a : b; }
};

template <class Op, class T> __device__ T warpReduce(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = Op::apply(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

/// Reduces each of N numbers over the warp; lane i gets the result of number i % N. N is a power of
/// two. In each step a lane keeps half of its numbers, and gives the other half to a lane that
/// reduces them with its own, so that all takes about N steps.
template <class Op, int N, class T> __device__ T warpReduceEach(T (&values)[N]) {
  static_assert(N > 0 && (N & (N - 1)) == 0 && N <= int(kWarp), "lanes have no halves of them");
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
    const bool upper = threadIdx.x & half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const T kept = upper ? values[i + half] : values[i],
              given = upper ? values[i] : values[i + half];
      values[i] = Op::apply(kept, __shfl_xor_sync(kAllLanes, given, half));
    }
  }
#pragma unroll
  for (int distance = N; distance < int(kWarp); distance *= 2)
    values[0] = Op::apply(values[0], __shfl_xor_sync(kAllLanes, values[0], distance));
  return values[0];
}

/// Reduces each of N numbers over the block. `scratch`, in shared memory, holds N * kMaxWarps; it
/// may be used again at once.
template <class Op, int N, class T> __device__ void blockReduce(T (&values)[N], T *scratch) {
  const unsigned warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
#pragma unroll
  for (int i = 0; i < N; ++i)
    values[i] = warpReduce<Op>(values[i]);
  if (warps == 1)
    return;
  if (threadIdx.x % kWarp == 0)
#pragma unroll
    for (int i = 0; i < N; ++i)
      scratch[i * kMaxWarps + warp] = values[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) {
    values[i] = scratch[i * kMaxWarps];
    for (unsigned w = 1; w < warps; ++w)
      values[i] = Op::apply(values[i], scratch[i * kMaxWarps + w]);
  }
  __syncthreads();
}

template <class Op, class T> __device__ T blockReduce(T value, T *scratch) {
  T values[1] = {value};
  blockReduce<Op>(values, scratch);
  return values[0];
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_BLOCKREDUCE_H
