//===- PairTiles.cpp ------------------------------------------------------===//
//
// Compiled for every x86-64 whatever the switches of the build are, and called where the processor
// has the instructions.
//
//===----------------------------------------------------------------------===//

#include "runtime/PairTiles.h"

#include <dnnl.hpp>

#ifdef __x86_64__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fsdp::rt {

#ifdef __x86_64__

#define FSDP_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define FSDP_PAIRS_INLINE                                                                          \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), always_inline)) inline
#define FSDP_TILES                                                                                 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16"),        \
                 noinline))

namespace {

//===----------------------------------------------------------------------===//
// Copies into tiles
//===----------------------------------------------------------------------===//

/// Exchanges lines and pairs.
FSDP_PAIRS_INLINE void transpose(__m512i (&v)[16]) {
  __m512i t[16], u[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(u[j], u[4 + j], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(u[j], u[4 + j], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0xee);
    v[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[4 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[8 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

/// A tile of up to 16 lines of up to 32 terms, whose terms are neighbours in memory.
template <bool Transpose>
FSDP_PAIRS_INLINE void packAlongTerms(const bf16 *from, std::int64_t stride, std::int64_t lines,
                                      std::int64_t terms, PairTile &to) {
  const __mmask32 mask = terms >= 32 ? ~__mmask32(0) : (__mmask32(1) << terms) - 1;
  __m512i v[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    v[i] = _mm512_maskz_loadu_epi16(i < lines ? mask : 0, from + i * stride);
  if (Transpose)
    transpose(v);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    _mm512_store_si512(to.pairs[i], v[i]);
}

/// One term of up to 16 lines, in the lower halves of numbers of 32 bits.
FSDP_PAIRS_INLINE __m512i termOf(const bf16 *from, __mmask16 lines) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lines, from));
}

/// The same as packAlongTerms, of lines that are neighbours in memory.
template <bool Transpose>
FSDP_PAIRS_INLINE void packAlongLines(const bf16 *from, std::int64_t stride, std::int64_t lines,
                                      std::int64_t terms, PairTile &to) {
  const __mmask16 mask = lines >= 16  ? 0xffff
                         : lines <= 0 ? 0
                                      : static_cast<__mmask16>((1 << lines) - 1);
  __m512i v[16];
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) {
    const __m512i even = termOf(from + 2 * p * stride, 2 * p < terms ? mask : 0);
    const __m512i odd = termOf(from + (2 * p + 1) * stride, 2 * p + 1 < terms ? mask : 0);
    v[p] = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
  }
  if (Transpose)
    transpose(v);
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p)
    _mm512_store_si512(to.pairs[p], v[p]);
}

template <bool Left> FSDP_PAIRS void pack(const PairLines &x, const bf16 *from, PairTile *to) {
  const std::int64_t steps = (x.terms + PairTile::kTerms - 1) / PairTile::kTerms;
  const std::int64_t tiles = (x.lines + kPairBlock - 1) / kPairBlock * 2;
  const auto place = [&](std::int64_t tile, std::int64_t step) -> PairTile & {
    return to[(tile / 2 * steps + step) * 2 + tile % 2];
  };
  // In the order of memory, as far as a tile allows.
  if (x.termStride == 1)
    for (std::int64_t tile = 0; tile < tiles; ++tile)
      for (std::int64_t step = 0; step < steps; ++step) {
        const std::int64_t line = tile * 16, term = step * 32;
        packAlongTerms<!Left>(from + line * x.lineStride + term, x.lineStride, x.lines - line,
                              x.terms - term, place(tile, step));
      }
  else
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t line = tile * 16, term = step * 32;
        packAlongLines<Left>(from + term * x.termStride + line, x.termStride, x.lines - line,
                             x.terms - term, place(tile, step));
      }
}

//===----------------------------------------------------------------------===//
// Blocks of products
//===----------------------------------------------------------------------===//

/// Eight rows by 32 columns stand in registers while the terms run.
FSDP_PAIRS void multiplyVectors(const PairTile *left, const PairTile *right, std::int64_t steps,
                                const float *from, std::int64_t fromStride, float *to,
                                std::int64_t toStride) {
  for (int row = 0; row < 32; row += 8) {
    __m512 sums[8][2];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        sums[i][v] =
            from ? _mm512_loadu_ps(from + (row + i) * fromStride + v * 16) : _mm512_setzero_ps();
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::uint32_t(&rows)[16][16] = left[2 * step + row / 16].pairs;
      const PairTile *columns = right + 2 * step;
#pragma GCC unroll 4
      for (int p = 0; p < 16; ++p) {
        const __m512bh b0 = (__m512bh)_mm512_load_si512(columns[0].pairs[p]);
        const __m512bh b1 = (__m512bh)_mm512_load_si512(columns[1].pairs[p]);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
          const __m512bh a = (__m512bh)_mm512_set1_epi32(static_cast<int>(rows[row % 16 + i][p]));
          sums[i][0] = _mm512_dpbf16_ps(sums[i][0], a, b0);
          sums[i][1] = _mm512_dpbf16_ps(sums[i][1], a, b1);
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v)
        _mm512_storeu_ps(to + (row + i) * toStride + v * 16, sums[i][v]);
  }
}

/// Orders the compiler's memory accesses with the tiles', which it may not know of.
void fence() { __asm__ volatile("" ::: "memory"); }

FSDP_TILES void multiplyTiles(const PairTile *left, const PairTile *right, std::int64_t steps,
                              const float *from, std::int64_t fromStride, float *to,
                              std::int64_t toStride) {
  fence();
  if (from) {
    const std::int64_t bytes = fromStride * 4;
    _tile_loadd(0, from, bytes);
    _tile_loadd(1, from + 16, bytes);
    _tile_loadd(2, from + 16 * fromStride, bytes);
    _tile_loadd(3, from + 16 * fromStride + 16, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t step = 0; step < steps; ++step, left += 2, right += 2) {
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_loadd(7, right + 1, 64);
    _tile_loadd(5, left + 1, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  const std::int64_t bytes = toStride * 4;
  _tile_stored(0, to, bytes);
  _tile_stored(1, to + 16, bytes);
  _tile_stored(2, to + 16 * toStride, bytes);
  _tile_stored(3, to + 16 * toStride + 16, bytes);
  fence();
}

/// Eight tiles of 16 lines of 64 bytes.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

FSDP_TILES void shapeTiles() {
  static constexpr TileShapes shapes;
  _tile_loadconfig(&shapes);
}
FSDP_TILES void releaseTiles() { _tile_release(); }

/// Linux gives a process the state of tiles when it asks for it.
bool mayUseTiles() {
  constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

template <class T>
FSDP_PAIRS_INLINE void store(const float *block, std::int64_t rows, std::int64_t columns, bool add,
                             T *to, std::int64_t stride) {
  const __mmask32 mask = columns >= 32 ? ~__mmask32(0) : (__mmask32(1) << columns) - 1;
  const auto low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
  for (std::int64_t i = 0; i < rows; ++i, block += kPairBlock, to += stride) {
    __m512 a = _mm512_load_ps(block), b = _mm512_load_ps(block + 16);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (add) {
        a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(low, to));
        b = _mm512_add_ps(b, _mm512_maskz_loadu_ps(high, to + 16));
      }
      _mm512_mask_storeu_ps(to, low, a);
      _mm512_mask_storeu_ps(to + 16, high, b);
    } else {
      if (add) {
        const __m512i before = _mm512_maskz_loadu_epi16(mask, to);
        const __m512i first = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(before));
        const __m512i last = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(before, 1));
        a = _mm512_add_ps(a, _mm512_castsi512_ps(_mm512_slli_epi32(first, 16)));
        b = _mm512_add_ps(b, _mm512_castsi512_ps(_mm512_slli_epi32(last, 16)));
      }
      _mm512_mask_storeu_epi16(to, mask, (__m512i)_mm512_cvtne2ps_pbh(b, a));
    }
  }
}

FSDP_PAIRS void storeFloats(const float *block, std::int64_t rows, std::int64_t columns, bool add,
                            float *to, std::int64_t stride) {
  store(block, rows, columns, add, to, stride);
}
FSDP_PAIRS void storeHalves(const float *block, std::int64_t rows, std::int64_t columns, bool add,
                            bf16 *to, std::int64_t stride) {
  store(block, rows, columns, add, to, stride);
}

} // namespace

PairInstructions pairInstructions() {
  static const PairInstructions best = [] {
    const auto allowed = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto has = [&](dnnl::cpu_isa isa) {
      return (allowed & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
    };
    if (has(dnnl::cpu_isa::avx512_core_amx) && mayUseTiles())
      return PairInstructions::Tiles;
    return has(dnnl::cpu_isa::avx512_core_bf16) ? PairInstructions::Vectors
                                                : PairInstructions::None;
  }();
  return best;
}

void packLeft(const PairLines &x, const bf16 *from, PairTile *to) { pack<true>(x, from, to); }
void packRight(const PairLines &x, const bf16 *from, PairTile *to) { pack<false>(x, from, to); }

PairMultiplier::PairMultiplier(PairInstructions instructions)
    : multiply(instructions == PairInstructions::Tiles ? multiplyTiles : multiplyVectors),
      tiles(instructions == PairInstructions::Tiles) {
  if (tiles)
    shapeTiles();
}

PairMultiplier::~PairMultiplier() {
  if (tiles)
    releaseTiles();
}

void storeBlock(const float *block, std::int64_t rows, std::int64_t columns, bool add, float *to,
                std::int64_t stride) {
  storeFloats(block, rows, columns, add, to, stride);
}
void storeBlock(const float *block, std::int64_t rows, std::int64_t columns, bool add, bf16 *to,
                std::int64_t stride) {
  storeHalves(block, rows, columns, add, to, stride);
}

#else // no instructions for pairs: nothing below is called

PairInstructions pairInstructions() { return PairInstructions::None; }
void packLeft(const PairLines &, const bf16 *, PairTile *) {}
void packRight(const PairLines &, const bf16 *, PairTile *) {}
PairMultiplier::PairMultiplier(PairInstructions) : multiply(nullptr), tiles(false) {}
PairMultiplier::~PairMultiplier() = default;
void storeBlock(const float *, std::int64_t, std::int64_t, bool, float *, std::int64_t) {}
void storeBlock(const float *, std::int64_t, std::int64_t, bool, bf16 *, std::int64_t) {}

#endif

} // namespace fsdp::rt
