//===- AttentionFloat.h - blocks of attention on f32 -------------*- C++ -*-===//
//
// Tiles of rows in shared memory, and the products of their rows; see AttentionFloat.cu.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONFLOAT_H
#define FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONFLOAT_H

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

namespace fsdp::rt::device::floats {

constexpr int kThreads = 256;
/// Rows of a block, of queries or keys: R below.
constexpr int kRows = 64, kFewRows = 32;
template <int R> constexpr int kScoreStride = R + 4;

/// R rows of D floats in shared memory; four more keep the 16-byte parts of eight rows in
/// different banks.
template <int D> constexpr int kStride = D + 4;
template <int D, int R> constexpr int kTile = R * kStride<D>;

/// Copies rows [first, first + R) of `matrix`; all else becomes zero.
template <int D, int R>
__device__ void fill(float *tile, const float *matrix, std::size_t stride, int first,
                     std::size_t rows, int width) {
  for (int i = threadIdx.x; i < R * D; i += kThreads) {
    const int row = i / D, column = i % D;
    const bool there = std::size_t(first + row) < rows && column < width;
    tile[row * kStride<D> + column] =
        there ? matrix[std::size_t(first + row) * stride + column] : 0.0f;
  }
}

/// A thread's place: rows y, y + 16, ... and columns x, x + 16, ... of scores; of results of width
/// D the same rows and columns 4 x to 4 x + 3, 64 further on again.
struct Place {
  int x, y;
  __device__ Place() : x(threadIdx.x % 16), y(threadIdx.x / 16) {}
};
template <int R> using Scores = float[R / 16][R / 16];

/// out[i][j] = row y + 16 i of `a` times row x + 16 j of `b`.
template <int D, int R>
__device__ void rowsByRows(Place at, const float *a, const float *b, Scores<R> &out) {
  constexpr int n = R / 16;
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < n; ++j)
      out[i][j] = 0;
#pragma unroll 2
  for (int d = 0; d < D; d += 4) {
    float4 left[n], right[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      left[i] = *reinterpret_cast<const float4 *>(a + (at.y + 16 * i) * kStride<D> + d);
      right[i] = *reinterpret_cast<const float4 *>(b + (at.x + 16 * i) * kStride<D> + d);
    }
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
      for (int j = 0; j < n; ++j) {
        float sum = fmaf(left[i].x, right[j].x, out[i][j]);
        sum = fmaf(left[i].y, right[j].y, sum);
        sum = fmaf(left[i].z, right[j].z, sum);
        out[i][j] = fmaf(left[i].w, right[j].w, sum);
      }
  }
}

/// Bytes of `tiles` tiles and `scores` blocks of scores.
template <int D, int R> constexpr std::size_t sharedBytes(int tiles, int scores) {
  return (tiles * kTile<D, R> + scores * R * kScoreStride<R>)*sizeof(float);
}

/// Calls `launch(std::integral_constant<int, R>(), bytes)`, R the rows of a block for which the
/// device has shared memory. Kernels that fit every device with kRows (99 KiB, 1 of them static)
/// have no smaller variant.
template <int D, int Tiles, int Scores, class Launch> cudaError_t withRows(Launch launch) {
  constexpr std::size_t kStatic = 1024, bytes = sharedBytes<D, kRows>(Tiles, Scores);
  if constexpr (bytes + kStatic > 99 * 1024) {
    std::size_t most = 0;
    if (cudaError_t status = findShared(most))
      return status;
    if (bytes + kStatic > most)
      return launch(std::integral_constant<int, kFewRows>(),
                    sharedBytes<D, kFewRows>(Tiles, Scores));
  }
  return launch(std::integral_constant<int, kRows>(), bytes);
}

} // namespace fsdp::rt::device::floats

#endif // FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONFLOAT_H
