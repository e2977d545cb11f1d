//===- Mma.h - tensor cores and their operands ------------------*- C++ -*-===//
//
// Instructions of a whole warp (PTX ISA, "Warp level matrix multiply-accumulate instructions"),
// with a second meaning for the emulator of the tests: loops over the documented layouts. In them
// lane = 4 g + t.
//
// A tile in shared memory has rows of D bf16 in chunks of 16 bytes. Chunks are permuted within
// their row so that eight rows of one chunk, which ldmatrix reads at a time, lie in different
// banks; wgmma calls the same a swizzle of 128 bytes (Wgmma.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_MMA_H
#define FSDP_RUNTIME_KERNELS_CUDA_MMA_H

#include "runtime/kernels/cuda/Element.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

#ifdef FSDP_CUDA_EMULATOR
inline float lowHalf(std::uint32_t pair) { return __uint_as_float(pair << 16); }
inline float highHalf(std::uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
#endif

/// d += a * b for a 16 x 16 matrix a, a 16 x 8 matrix b, in bf16, and a 16 x 8 matrix d. A lane has
///   a[0]: row g, columns 2t, 2t + 1    a[1]: row g + 8    a[2], a[3]: the same, columns + 8
///   b[0]: column g, rows 2t, 2t + 1    b[1]: rows + 8
///   d[0], d[1]: row g, columns 2t, 2t + 1    d[2], d[3]: row g + 8
__device__ inline void multiplyAdd(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                   std::uint32_t b1) {
#if defined(__CUDA_ARCH__)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(FSDP_CUDA_EMULATOR)
  struct Lane {
    float *d;
    const std::uint32_t *a;
    std::uint32_t b[2];
  } mine = {d, a, {b0, b1}};
  ::emulator::meetWarp({"mma", __FILE__, __LINE__}, 0xffffffffu, &mine, [](void *const lanes[32]) {
    float a[16][16], b[8][16];
    for (int l = 0; l < 32; ++l) {
      const auto &lane = *static_cast<const Lane *>(lanes[l]);
      const int g = l / 4, t = l % 4;
      for (int i = 0; i < 4; ++i) {
        float *pair = &a[g + i % 2 * 8][2 * t + i / 2 * 8];
        pair[0] = lowHalf(lane.a[i]), pair[1] = highHalf(lane.a[i]);
      }
      for (int i = 0; i < 2; ++i)
        b[g][2 * t + 8 * i] = lowHalf(lane.b[i]), b[g][2 * t + 8 * i + 1] = highHalf(lane.b[i]);
    }
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < 4; ++i) {
        const float *row = a[l / 4 + i / 2 * 8], *column = b[l % 4 * 2 + i % 2];
        float sum = 0;
        for (int k = 0; k < 16; ++k)
          sum += row[k] * column[k];
        static_cast<const Lane *>(lanes[l])->d[i] += sum;
      }
  });
#endif
}

/// Four 8 x 8 matrices of 16-bit elements: lane l gives the address, in shared memory, of row l % 8
/// of matrix l / 8, and gets of matrix i in to[i] columns 2t, 2t + 1 of row g; transposed: rows 2t,
/// 2t + 1 of column g.
template <bool kTransposed> __device__ void loadMatrices(std::uint32_t (&to)[4], const void *row) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#elif defined(FSDP_CUDA_EMULATOR)
  struct Lane {
    std::uint32_t *to;
    const std::uint16_t *row;
  } mine = {to, static_cast<const std::uint16_t *>(row)};
  ::emulator::meetWarp(
      {"ldmatrix", __FILE__, __LINE__}, 0xffffffffu, &mine, [](void *const lanes[32]) {
        for (int l = 0; l < 32; ++l) {
          ::emulator::actFor(l);
          for (int i = 0; i < 4; ++i) {
            std::uint32_t pair = 0;
            for (int half = 0; half < 2; ++half) {
              const int r = kTransposed ? l % 4 * 2 + half : l / 4;
              const int c = kTransposed ? l / 4 : l % 4 * 2 + half;
              pair |= std::uint32_t(static_cast<const Lane *>(lanes[8 * i + r])->row[c])
                      << (16 * half);
            }
            static_cast<const Lane *>(lanes[l])->to[i] = pair;
          }
        }
      });
#endif
}

/// Copies kBytes, 4 or 16, into shared memory in the background, or zeros where `there` is false,
/// when `from` may be any address; both are aligned to kBytes.
template <int kBytes> __device__ void copyInBackground(void *to, const void *from, bool there) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(address), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(address), "l"(from), "n"(kBytes), "r"(there ? kBytes : 0)
                 : "memory");
#elif defined(FSDP_CUDA_EMULATOR)
  ::emulator::copyInBackground(to, from, kBytes, there ? kBytes : 0);
#endif
}
/// Closes a group of copies.
__device__ inline void closeCopies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif defined(FSDP_CUDA_EMULATOR)
  ::emulator::commitCopies();
#endif
}
/// Waits for this thread's copies, but for those of the latest kPending groups.
template <int kPending> __device__ void waitForCopies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
#elif defined(FSDP_CUDA_EMULATOR)
  ::emulator::waitForCopies(kPending);
#endif
}

/// kRows rows of D bf16 in shared memory, in parts of at most 64 columns one after another.
template <int D, int kRows> class SharedTile {
public:
  static constexpr int kChunks = D / 8, kPartChunks = D < 64 ? kChunks : 8;
  static constexpr std::size_t kElements = std::size_t(D) * kRows;

  __device__ explicit SharedTile(void *memory) : chunks(static_cast<uint4 *>(memory)) {}

  /// Where chunk `chunk` of row `row` lies, in chunks.
  __host__ __device__ static constexpr int place(int row, int chunk) {
    // Four chunks are half of the banks: two rows lie beside each other.
    const int permuted = kPartChunks == 8 ? chunk ^ row % 8 : chunk ^ row / 2 % kPartChunks;
    return (chunk / kPartChunks * kRows + row) * kPartChunks + permuted % kPartChunks;
  }
  __device__ uint4 *at(int row, int chunk) const { return chunks + place(row, chunk); }

  /// The 16 x 16 block at (row, 16 * step) as an operand a.
  __device__ void loadA(int row, int step, int lane, std::uint32_t (&a)[4]) const {
    loadMatrices<false>(a, at(row + lane % 16, 2 * step + lane / 16));
  }
  /// 16 rows from `row` on as the columns of two operands b: {b[0], b[1]}, {b[2], b[3]}.
  __device__ void loadB(int row, int step, int lane, std::uint32_t (&b)[4]) const {
    loadMatrices<false>(b, at(row + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
  }
  /// 16 rows from `row` on as the rows of two operands b, of columns [16 * step, 16 * step + 16).
  __device__ void loadRows(int row, int step, int lane, std::uint32_t (&b)[4]) const {
    loadMatrices<true>(b, at(row + lane % 16, 2 * step + lane / 16));
  }

  /// Begins to copy rows [first, first + kRows) of `matrix`, which has `rows` rows of `width`
  /// elements, `stride` elements apart; all else becomes zero. The kThreads threads of the block
  /// take part. `vectors`: rows are aligned to 16 bytes.
  template <int kThreads>
  __device__ void fill(const bf16 *matrix, std::size_t stride, int first, int rows, int width,
                       bool vectors) const {
    static_assert(kThreads % kChunks == 0, "each thread copies the same chunk of its rows");
    constexpr int kStep = kThreads / kChunks; // rows from one copy to the next
    const int chunk = threadIdx.x % kChunks, upper = threadIdx.x / kChunks;
    const bool inside = chunk * 8 < width;
    if (vectors) {
      const bf16 *from = matrix + std::size_t(first + upper) * stride + chunk * 8;
#pragma unroll
      for (int i = 0; i < kRows; i += kStep) {
        const int row = upper + i;
        const bool there = inside && first + row < rows;
        if (kRows % kStep == 0 || row < kRows)
          copyInBackground<16>(at(row, chunk), from, there);
        from += kStep * stride;
      }
      return;
    }
    for (int row = upper; row < kRows; row += kStep) {
      const bool there = inside && first + row < rows;
      const bf16 *from = matrix + (there ? std::size_t(first + row) * stride + chunk * 8 : 0);
      std::uint32_t words[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const std::uint32_t low = there && chunk * 8 + 2 * w < width ? from[2 * w].bits : 0;
        const std::uint32_t high =
            there && chunk * 8 + 2 * w + 1 < width ? from[2 * w + 1].bits : 0;
        words[w] = low | high << 16;
      }
      *at(row, chunk) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

  /// Puts the columns [8 * n, 8 * n + 8) of a 16-row block d at `row`, times `factor` of its two
  /// rows.
  __device__ void put(int row, int n, int lane, const float (&d)[4], float upper,
                      float lower) const {
    const int g = lane / 4, t = lane % 4;
    reinterpret_cast<std::uint32_t *>(at(row + g, n))[t] = bf16Pair(d[0] * upper, d[1] * upper);
    reinterpret_cast<std::uint32_t *>(at(row + g + 8, n))[t] = bf16Pair(d[2] * lower, d[3] * lower);
  }
  /// Copies 16 rows from `row` on, which are rows `first` and on of `matrix`. A warp does it.
  __device__ void drain(int row, int lane, bf16 *matrix, std::size_t stride, std::size_t first,
                        std::size_t rows, int width, bool vectors) const {
    for (int c = lane; c < 16 * kChunks; c += 32) {
      const int r = c / kChunks, chunk = c % kChunks;
      if (first + r >= rows || chunk * 8 >= width)
        continue;
      bf16 *to = matrix + (first + r) * stride + chunk * 8;
      const uint4 bits = *at(row + r, chunk);
      if (vectors) {
        *reinterpret_cast<uint4 *>(to) = bits;
        continue;
      }
      const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
      for (int i = 0; i < 8 && chunk * 8 + i < width; ++i)
        to[i].bits = static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)));
    }
  }

private:
  uint4 *chunks;
};

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_MMA_H
