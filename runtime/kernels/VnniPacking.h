//===- VnniPacking.h - operands of products of pairs ------------*- C++ -*-===//
//
// Blocks of bf16 on their way into and out of Bf16MicroKernel.h: 32 rows at a time, in registers.
// For processors with AVX512_BF16; include it only where __AVX512BF16__ is defined.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_VNNIPACKING_H
#define FSDP_RUNTIME_KERNELS_VNNIPACKING_H

#include "runtime/kernels/Bf16MicroKernel.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/numerics/Lanes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace fsdp::rt::pairs {

/// Up to 32 rows, contiguous, `stride` elements apart.
struct Block {
  const bf16 *first;
  std::ptrdiff_t stride;
  std::size_t rows, width;
};

inline std::size_t roundUp(std::size_t count) {
  return (count + kVnniBlock - 1) / kVnniBlock * kVnniBlock;
}

inline __mmask32 firstWords(std::size_t count) {
  return count >= 32 ? ~__mmask32(0) : static_cast<__mmask32>((1u << count) - 1);
}
inline __mmask16 firstFloats(std::size_t count) {
  return count >= 16 ? static_cast<__mmask16>(~0) : static_cast<__mmask16>((1u << count) - 1);
}

/// Columns [column, column + 32) of a row, zero where there is none. A `Full` block has 32 rows and
/// a width that is a multiple of 32.
template <bool Full> __m512i load(const Block &block, std::size_t row, std::size_t column) {
  const bf16 *at = block.first + static_cast<std::ptrdiff_t>(row) * block.stride + column;
  if (Full)
    return _mm512_loadu_si512(at);
  return row < block.rows ? _mm512_maskz_loadu_epi16(firstWords(block.width - column), at)
                          : _mm512_setzero_si512();
}
inline bool isFull(const Block &block) {
  return block.rows == kVnniBlock && block.width % kVnniBlock == 0;
}

/// Sixteen vectors of sixteen 32-bit numbers become those of their columns.
inline void transpose(__m512i *v) {
  __m512i a[16], b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  // b[4 i + j] holds column 4 q + j, of rows 4 i to 4 i + 3, in its quarter q.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i low = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);
    const __m512i high = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88);
    const __m512i lowOdd = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);
    const __m512i highOdd = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);
    v[j] = _mm512_shuffle_i32x4(low, high, 0x88);
    v[8 + j] = _mm512_shuffle_i32x4(low, high, 0xdd);
    v[4 + j] = _mm512_shuffle_i32x4(lowOdd, highOdd, 0x88);
    v[12 + j] = _mm512_shuffle_i32x4(lowOdd, highOdd, 0xdd);
  }
}

/// Number i of the result is `both` of all numbers of vector i, taken in the same order each.
template <class Both> __m512 reduceEach(const __m512 *v, Both both) {
  __m512 a[8], b[4];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    a[i] = both(_mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]),
                _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d even = _mm512_castps_pd(a[2 * i]), odd = _mm512_castps_pd(a[2 * i + 1]);
    b[i] = both(_mm512_castpd_ps(_mm512_unpacklo_pd(even, odd)),
                _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd)));
  }
  const auto quarters = [&](__m512 low, __m512 high) {
    return both(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd));
  };
  return quarters(quarters(b[0], b[1]), quarters(b[2], b[3]));
}

/// Word i of the result is word i / 2 of `even` or of `odd`, from the given half of both.
inline __m512i interleave(__m512i even, __m512i odd, bool upperHalf) {
  const __m512i step = _mm512_set1_epi32(0x00010001);
  const __m512i first =
      _mm512_set_epi32(0x002f000f, 0x002e000e, 0x002d000d, 0x002c000c, 0x002b000b, 0x002a000a,
                       0x00290009, 0x00280008, 0x00270007, 0x00260006, 0x00250005, 0x00240004,
                       0x00230003, 0x00220002, 0x00210001, 0x00200000);
  const __m512i index = upperHalf ? _mm512_add_epi16(first, _mm512_slli_epi16(step, 4)) : first;
  return _mm512_permutex2var_epi16(even, index, odd);
}

/// The words of the lower half, each followed by its partner of the upper half.
inline __m512i interleaveHalves(__m512i v) {
  const __m512i index =
      _mm512_set_epi32(0x001f000f, 0x001e000e, 0x001d000d, 0x001c000c, 0x001b000b, 0x001a000a,
                       0x00190009, 0x00180008, 0x00170007, 0x00160006, 0x00150005, 0x00140004,
                       0x00130003, 0x00120002, 0x00110001, 0x00100000);
  return _mm512_permutexvar_epi16(index, v);
}

/// Rows as they are, at `to`, 32 of them `stride` elements apart, filled up with zeros.
inline void copyRows(const Block &block, bf16 *to, std::size_t stride) {
  for (std::size_t row = 0; row < kVnniBlock; ++row)
    for (std::size_t column = 0; column < block.width; column += 32)
      _mm512_storeu_si512(to + row * stride + column, load<false>(block, row, column));
}

/// The panel of the transposed: up to 32 rows become its columns, the width is summed over.
template <bool Full> void packTransposed(const Block &block, bf16 *panel) {
  for (std::size_t column = 0; column < block.width; column += 32)
    for (std::size_t half = 0; half < 32; half += 16) {
      __m512i v[16];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i)
        v[i] = load<Full>(block, half + i, column);
      transpose(v);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i)
        _mm512_storeu_si512(panel + (column / 2 + i) * 64 + 2 * half, v[i]);
    }
}
inline void packTransposed(const Block &block, bf16 *panel) {
  isFull(block) ? packTransposed<true>(block, panel) : packTransposed<false>(block, panel);
}

/// Up to 32 rows of panels of 32 columns of the width; the rows are summed over.
template <bool Full> void packPairs(const Block &block, bf16 *panels, std::size_t panelStride) {
  for (std::size_t column = 0; column < block.width; column += 32, panels += panelStride)
    for (std::size_t row = 0; row < kVnniBlock; row += 2) {
      const __m512i even = load<Full>(block, row, column);
      const __m512i odd = load<Full>(block, row + 1, column);
      _mm512_storeu_si512(panels + row * 32, interleave(even, odd, false));
      _mm512_storeu_si512(panels + row * 32 + 32, interleave(even, odd, true));
    }
}
inline void packPairs(const Block &block, bf16 *panels, std::size_t panelStride) {
  isFull(block) ? packPairs<true>(block, panels, panelStride)
                : packPairs<false>(block, panels, panelStride);
}

/// The transposed of up to 32 rows: columns[i * stride + row] is number i of the row.
template <bool Full> void packColumns(const Block &block, bf16 *columns, std::size_t stride) {
  const __m512i even =
      _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                       24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(1));
  for (std::size_t column = 0; column < block.width; column += 32) {
    __m512i low[16], high[16];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i)
      low[i] = load<Full>(block, i, column);
    transpose(low);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i)
      high[i] = load<Full>(block, 16 + i, column);
    transpose(high);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      bf16 *at = columns + (column + 2 * i) * stride;
      _mm512_storeu_si512(at, _mm512_permutex2var_epi16(low[i], even, high[i]));
      _mm512_storeu_si512(at + stride, _mm512_permutex2var_epi16(low[i], odd, high[i]));
    }
  }
}
inline void packColumns(const Block &block, bf16 *columns, std::size_t stride) {
  isFull(block) ? packColumns<true>(block, columns, stride)
                : packColumns<false>(block, columns, stride);
}

inline __m512 exp2(__m512 x) {
  return reinterpret_cast<__m512>(lanes::exp2(reinterpret_cast<lanes::Vector>(x)));
}

/// Two vectors as one of bf16, `low` first. Subnormal numbers become zero.
inline __m512i narrow(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/// row[i] = factor * from[i], rounded.
inline void storeRow(const float *from, std::size_t width, float factor, bf16 *row) {
  const __m512 factors = _mm512_set1_ps(factor);
  for (std::size_t column = 0; column < width; column += 32)
    _mm512_mask_storeu_epi16(row + column, firstWords(width - column),
                             narrow(_mm512_mul_ps(factors, _mm512_loadu_ps(from + column)),
                                    _mm512_mul_ps(factors, _mm512_loadu_ps(from + column + 16))));
}

} // namespace fsdp::rt::pairs

#endif // FSDP_RUNTIME_KERNELS_VNNIPACKING_H
