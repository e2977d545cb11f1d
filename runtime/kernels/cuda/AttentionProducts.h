//===- AttentionProducts.h - products of blocks, two ways --------*- C++ -*-===//
//
// Each warp has 16 rows of a product, or kTiles times as many. ByWarps multiplies with mma.sync,
// which every device from compute capability 8.0 on has; ByGroups with wgmma, which 9.0 alone has:
// four warps with 64 rows work together, in the background. In both a lane has the part of a
// product that Mma.h describes, so the kernels around them are the same.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONPRODUCTS_H
#define FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONPRODUCTS_H

#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Wgmma.h"

namespace fsdp::rt::device {

#ifndef FSDP_CUDA_EMULATOR
/// Never launched. Its code has shared memory where it was compiled for wgmma.
static __global__ void probeWgmma(int *numbers) {
#if defined(__CUDA_ARCH__) && FSDP_HAS_WGMMA
  __shared__ int reversed[32];
  reversed[threadIdx.x] = numbers[threadIdx.x];
  __syncthreads();
  numbers[threadIdx.x] = reversed[31 - threadIdx.x];
#endif
}
#endif

/// Whether the code that the driver has chosen of this file's kernels, for the device of this
/// thread, multiplies by wgmma. A program may have several (90, 90a, PTX).
inline cudaError_t hasWarpgroups(bool &has) {
  has = false;
#ifndef FSDP_CUDA_EMULATOR
  static thread_local int known = -1; // a thread stays on one device
  if (known < 0) {
    cudaFuncAttributes attributes;
    if (cudaError_t status = cudaFuncGetAttributes(&attributes, probeWgmma))
      return status;
    known = attributes.sharedSizeBytes > 0;
  }
  has = known > 0;
#else
  int device = 0, major = 0, minor = 0;
  for (cudaError_t status :
       {cudaGetDevice(&device),
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device)})
    if (status != cudaSuccess)
      return status;
  has = major == 9 && minor == 0;
#endif
  return cudaSuccess;
}

/// Traps in a kernel that was launched on a device for which it has no code.
__device__ inline void trap() {
#if defined(__CUDA_ARCH__)
  asm volatile("trap;");
#endif
}

/// Matrices of 16 rows and 8 N columns in registers as operands a, 16 columns each.
template <int kTiles, int N>
__device__ void pack(const float (&from)[kTiles][N][4], std::uint32_t (&to)[kTiles][N / 2][4]) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        to[m][n / 2][n % 2 * 2 + half] = bf16Pair(from[m][n][2 * half], from[m][n][2 * half + 1]);
}

struct ByWarps {
  static constexpr bool kHere = true;
  static constexpr int kRowsTogether = 16;

  /// Rows of a tile that are multiplied again and again.
  template <int D, int kRows, int kTiles> class Left {
  public:
    __device__ Left(const SharedTile<D, kRows> &tile, int row) : tile(tile), row(row) {}
    __device__ void load(int tileNumber, int step, int lane, std::uint32_t (&a)[4]) const {
      tile.loadA(row + 16 * tileNumber, step, lane, a);
    }

  private:
    SharedTile<D, kRows> tile;
    int row;
  };

  /// out = a * b^T over D columns, for 8 N rows of `b`.
  template <int D, int kRows, int kTiles, int N>
  __device__ static void rowsByRows(const Left<D, kRows, kTiles> &a, const SharedTile<D, 8 * N> &b,
                                    int lane, float (&out)[kTiles][N][4]) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          out[m][n][i] = 0;
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      std::uint32_t left[kTiles][4], right[4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
        a.load(m, step, lane, left[m]);
#pragma unroll
      for (int n = 0; n < N; n += 2) {
        b.loadB(8 * n, step, lane, right);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiplyAdd(out[m][n], left[m], right[0], right[1]);
          multiplyAdd(out[m][n + 1], left[m], right[2], right[3]);
        }
      }
    }
  }

  /// acc += a * b for packed `a` with as many columns as `b` has rows.
  template <int D, int kTiles, int kSteps>
  __device__ static void timesRows(const std::uint32_t (&a)[kTiles][kSteps][4],
                                   const SharedTile<D, 16 * kSteps> &b, int lane,
                                   float (&acc)[kTiles][D / 8][4]) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
#pragma unroll
      for (int step = 0; step < D / 16; ++step) {
        std::uint32_t right[4];
        b.loadRows(16 * k, step, lane, right);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiplyAdd(acc[m][2 * step], a[m][k], right[0], right[1]);
          multiplyAdd(acc[m][2 * step + 1], a[m][k], right[2], right[3]);
        }
      }
  }

  /// Before the barrier after which other threads multiply the elements that this thread copied.
  __device__ static void publish() {}
  /// `values`, which are not results of running products, are computed before later code.
  template <class Values> __device__ static void settle(Values &) {}
  /// Ends a group of products.
  __device__ static void commit() {}
  /// All groups but the last kPending are done, and their `results` may be used.
  template <int kPending, class... Results> __device__ static void wait(Results &...) {}
};

struct ByGroups {
  /// Whether the code being compiled can multiply so.
  static constexpr bool kHere = FSDP_HAS_WGMMA;
  static constexpr int kRowsTogether = kGroupRows;

  /// In shared memory: rows that stay in registers across products of the same shape as those of
  /// timesRows share registers with their operands, in code of ptxas 13.0.88, and are overwritten.
  template <int D, int kRows, int kTiles> class Left {
  public:
    static_assert(kTiles == 1, "a warpgroup has 64 rows");
    // Shuffled so that the compiler knows that it is the same in the whole warp.
    __device__ Left(const SharedTile<D, kRows> &tile, int row)
        : tile(tile), row(__shfl_sync(kAllLanes, row / kGroupRows * kGroupRows, 0)) {}
    __device__ SharedOperand at(int step) const { return alongRows(tile, row, step); }

  private:
    SharedTile<D, kRows> tile;
    int row;
  };

  template <int D, int kRows, int N>
  __device__ static void rowsByRows(const Left<D, kRows, 1> &a, const SharedTile<D, 8 * N> &b, int,
                                    float (&out)[1][N][4]) {
    beginProducts();
#pragma unroll
    for (int step = 0; step < D / 16; ++step)
      multiplyAdd64<8 * N, false>(out[0], a.at(step), alongRows(b, 0, step), step > 0);
  }
  template <int D, int kSteps>
  __device__ static void timesRows(std::uint32_t (&a)[1][kSteps][4],
                                   const SharedTile<D, 16 * kSteps> &b, int,
                                   float (&acc)[1][D / 8][4]) {
    holdRegisters(a[0]);
    holdRegisters(acc[0]);
    beginProducts();
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      multiplyAdd64<D, true>(acc[0], a[0][k], acrossRows(b, 16 * k), true);
  }

  __device__ static void publish() { fenceSharedWrites(); }
  template <class Values> __device__ static void settle(Values &values) {
    holdRegisters(values[0]);
  }
  __device__ static void commit() { commitProducts(); }
  template <int kPending, class... Results> __device__ static void wait(Results &...results) {
    waitForProducts<kPending>();
    (holdRegisters(results[0]), ...);
  }
};

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONPRODUCTS_H
