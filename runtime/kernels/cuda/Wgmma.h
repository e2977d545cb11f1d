//===- Wgmma.h - products of a warpgroup, on Hopper --------------*- C++ -*-===//
//
// Instructions of four warps (PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate
// instructions"), of compute capability 9.0 alone (sm_90a), with a second meaning for the emulator
// of the tests. They run in the background:
//
//   fenceSharedWrites();    // each thread that wrote the tiles, before the barrier
//   __syncthreads();
//   holdRegisters(d);       // and (a): all that writes them comes before
//   beginProducts();        // later products access registers that were written
//   multiplyAdd64<N>(...);  // any number
//   commitProducts();
//   waitForProducts<0>();   // for all groups but the last 0
//   holdRegisters(d);       // all that reads them comes after
//
// A tile in shared memory is a SharedTile (Mma.h) of at least 64 columns at a multiple of 1024
// bytes: its permutation of chunks is wgmma's swizzle of 128 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_WGMMA_H
#define FSDP_RUNTIME_KERNELS_CUDA_WGMMA_H

#include "runtime/kernels/cuda/Mma.h"

namespace fsdp::rt::device {

/// Whether the code being compiled may use the instructions.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(FSDP_CUDA_EMULATOR)
#define FSDP_HAS_WGMMA 1
#else
#define FSDP_HAS_WGMMA 0
#endif

constexpr int kGroupThreads = 128, kGroupRows = 64;

/// A matrix of bf16 in shared memory in blocks of 8 rows of 128 bytes: a matrix descriptor.
struct SharedOperand {
#if defined(FSDP_CUDA_EMULATOR)
  const char *start;
  unsigned columnBlocks;
#else
  std::uint64_t bits;
#endif

  /// `start` is a multiple of 1024 bytes; `columnBlocks`: bytes from 64 columns to the next 64,
  /// where rows are summed over.
  __device__ static SharedOperand at(const void *start, unsigned columnBlocks) {
#if defined(FSDP_CUDA_EMULATOR)
    return {static_cast<const char *>(start), columnBlocks};
#else
    // Address and distances in units of 16 bytes; a swizzle of 128 bytes.
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(start));
    return {std::uint64_t((address & 0x3ffffu) >> 4) | std::uint64_t(columnBlocks >> 4) << 16 |
            std::uint64_t(1024 >> 4) << 32 | std::uint64_t(1) << 62};
#endif
  }
  /// `bytes`: a multiple of 16.
  __device__ SharedOperand behind(int bytes) const {
#if defined(FSDP_CUDA_EMULATOR)
    return {start + bytes, columnBlocks};
#else
    return {bits + static_cast<unsigned>(bytes >> 4)};
#endif
  }
};

/// 16 columns of rows [row, ...): products are summed along the rows. `row` is a multiple of 8.
template <int D, int kRows>
__device__ SharedOperand alongRows(const SharedTile<D, kRows> &tile, int row, int step) {
  return SharedOperand::at(tile.at(0, 0), 16)
      .behind(step / 4 * (kRows * 128) + row * 128 + step % 4 * 32);
}
/// 16 rows from `row` on, of all columns: products are summed over the rows.
template <int D, int kRows>
__device__ SharedOperand acrossRows(const SharedTile<D, kRows> &tile, int row) {
  return SharedOperand::at(tile.at(0, 0), kRows * 128).behind(row * 128);
}

#if defined(FSDP_CUDA_EMULATOR)

/// d (64 x N) = a * b, or += where `adds`. Of its warp's 16 rows of d, a lane has the elements that
/// it has in mma.sync of each 8 columns; a is in registers, as an operand a of mma.sync.
template <int N, bool kAcross>
void multiplyAdd64(float (&d)[N / 8][4], const std::uint32_t (&a)[4], const SharedOperand &b,
                   bool adds) {
  ::emulator::multiplyInBackground(__FILE__, __LINE__, &d[0][0], N, adds, a, nullptr,
                                   {b.start, b.columnBlocks, kAcross});
}
/// The same with rows of `a` in shared memory, along which products are summed.
template <int N, bool kAcross>
void multiplyAdd64(float (&d)[N / 8][4], const SharedOperand &a, const SharedOperand &b,
                   bool adds) {
  ::emulator::multiplyInBackground(__FILE__, __LINE__, &d[0][0], N, adds, nullptr, a.start,
                                   {b.start, b.columnBlocks, kAcross});
}
inline void fenceSharedWrites() { ::emulator::fenceSharedWrites(); }
inline void beginProducts() { ::emulator::beginProducts(); }
inline void commitProducts() { ::emulator::commitProducts(); }
template <int kPending> void waitForProducts() { ::emulator::waitForProducts(kPending); }
template <class T, int N> void holdRegisters(T (&)[N][4]) {}

#else

#define FSDP_REGISTERS_OF(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define FSDP_EIGHT_FROM(n)                                                                         \
  FSDP_REGISTERS_OF(n), FSDP_REGISTERS_OF(n + 1), FSDP_REGISTERS_OF(n + 2),                        \
      FSDP_REGISTERS_OF(n + 3), FSDP_REGISTERS_OF(n + 4), FSDP_REGISTERS_OF(n + 5),                \
      FSDP_REGISTERS_OF(n + 6), FSDP_REGISTERS_OF(n + 7)
#define FSDP_32_REGISTERS                                                                          \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "    \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FSDP_64_REGISTERS                                                                          \
  FSDP_32_REGISTERS                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "   \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// d (64 x N) = a * b, or += where `adds`. Of its warp's 16 rows of d, a lane has the elements that
/// it has in mma.sync of each 8 columns; a is in registers, as an operand a of mma.sync.
template <int N, bool kAcross>
__device__ void multiplyAdd64(float (&d)[N / 8][4], const std::uint32_t (&a)[4],
                              const SharedOperand &b, bool adds) {
#if FSDP_HAS_WGMMA
  static_assert(N == 64 || N == 128, "no instruction is written for other widths");
  if constexpr (N == 64)
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " FSDP_32_REGISTERS
                 "}, {%32, %33, %34, %35}, %36, adds, 1, 1, %38;\n}\n"
                 : FSDP_EIGHT_FROM(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "r"(int(adds)),
                   "n"(int(kAcross)));
  else
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " FSDP_64_REGISTERS
                 "}, {%64, %65, %66, %67}, %68, adds, 1, 1, %70;\n}\n"
                 : FSDP_EIGHT_FROM(0), FSDP_EIGHT_FROM(8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "r"(int(adds)),
                   "n"(int(kAcross)));
#endif
}
/// The same with rows of `a` in shared memory, along which products are summed.
template <int N, bool kAcross>
__device__ void multiplyAdd64(float (&d)[N / 8][4], const SharedOperand &a, const SharedOperand &b,
                              bool adds) {
#if FSDP_HAS_WGMMA
  static_assert(N == 64 || N == 128, "no instruction is written for other widths");
  if constexpr (N == 64)
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " FSDP_32_REGISTERS
                 "}, %32, %33, adds, 1, 1, 0, %35;\n}\n"
                 : FSDP_EIGHT_FROM(0)
                 : "l"(a.bits), "l"(b.bits), "r"(int(adds)), "n"(int(kAcross)));
  else
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " FSDP_64_REGISTERS
                 "}, %64, %65, adds, 1, 1, 0, %67;\n}\n"
                 : FSDP_EIGHT_FROM(0), FSDP_EIGHT_FROM(8)
                 : "l"(a.bits), "l"(b.bits), "r"(int(adds)), "n"(int(kAcross)));
#endif
}

/// This thread's writes to shared memory are seen by the products of all threads that meet it at a
/// later barrier.
__device__ inline void fenceSharedWrites() {
#if FSDP_HAS_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
__device__ inline void beginProducts() {
#if FSDP_HAS_WGMMA
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ inline void commitProducts() {
#if FSDP_HAS_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <int kPending> __device__ void waitForProducts() {
#if FSDP_HAS_WGMMA
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kPending) : "memory");
#endif
}
/// No access to `registers` moves across this.
template <int N> __device__ void holdRegisters(float (&registers)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+f"(registers[n][i])::"memory");
}
template <int N> __device__ void holdRegisters(std::uint32_t (&registers)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+r"(registers[n][i])::"memory");
}

#undef FSDP_REGISTERS_OF
#undef FSDP_EIGHT_FROM
#undef FSDP_32_REGISTERS
#undef FSDP_64_REGISTERS

#endif

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_WGMMA_H
