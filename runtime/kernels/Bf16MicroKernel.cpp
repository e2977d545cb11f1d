//===- Bf16MicroKernel.cpp ----------------------------------------------------===//

#include "runtime/kernels/Bf16MicroKernel.h"
#include "runtime/numerics/BFloat16.h"

#include <cstdint>
#include <cstring>
#include <dnnl.hpp>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace fsdp::rt {

#ifdef __AVX512BF16__

namespace {

/// Eight rows of 32 columns.
void multiplyVectors(const Bf16MicroKernel &p, const bf16 *a, const bf16 *b, float *c, bool add) {
  constexpr int kRows = 8;
  for (std::size_t j = 0; j < p.n; j += 32, b += p.bPanel)
    for (std::size_t i = 0; i < p.m; i += kRows) {
      const bf16 *left = a + i * p.aRow, *right = b;
      float *to = c + i * p.cRow + j;
      __m512 sums[kRows][2];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v)
          sums[r][v] =
              add ? _mm512_loadu_ps(to + std::size_t(r) * p.cRow + v * 16) : _mm512_setzero_ps();
      for (std::size_t l = 0; l < p.k; l += 2, left += 2, right += 64) {
        const auto low = (__m512bh)_mm512_loadu_si512(right);
        const auto high = (__m512bh)_mm512_loadu_si512(right + 32);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          std::int32_t pair;
          std::memcpy(&pair, left + std::size_t(r) * p.aRow, sizeof(pair));
          const auto factors = (__m512bh)_mm512_set1_epi32(pair);
          sums[r][0] = _mm512_dpbf16_ps(sums[r][0], factors, low);
          sums[r][1] = _mm512_dpbf16_ps(sums[r][1], factors, high);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v)
          _mm512_storeu_ps(to + std::size_t(r) * p.cRow + v * 16, sums[r][v]);
    }
}

// Compiled whatever the switches: compilers name these features differently, and a processor that
// has them may still not be granted their registers.
#define FSDP_MATRIX_UNIT __attribute__((target("amx-tile,amx-bf16")))

/// Two by two tiles of 16 rows and columns.
FSDP_MATRIX_UNIT void multiplyMatrices(const Bf16MicroKernel &p, const bf16 *a, const bf16 *b,
                                       float *c, bool add) {
  const std::size_t aBytes = p.aRow * sizeof(bf16), cBytes = p.cRow * sizeof(float);
  constexpr std::size_t kRowBytes = 64 * sizeof(bf16);
  // gcc 12 does not model that these instructions read and write memory.
  __asm__ volatile("" ::: "memory");
  for (std::size_t j = 0; j < p.n; j += 32, b += p.bPanel)
    for (std::size_t i = 0; i < p.m; i += 32) {
      float *top = c + i * p.cRow + j, *bottom = top + 16 * p.cRow;
      if (add) {
        _tile_loadd(0, top, cBytes);
        _tile_loadd(1, top + 16, cBytes);
        _tile_loadd(2, bottom, cBytes);
        _tile_loadd(3, bottom + 16, cBytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      const bf16 *left = a + i * p.aRow, *right = b;
      for (std::size_t l = 0; l < p.k; l += 32, left += 32, right += 16 * 64) {
        _tile_loadd(4, left, aBytes);
        _tile_loadd(6, right, kRowBytes);
        _tile_loadd(7, right + 32, kRowBytes);
        _tile_loadd(5, left + 16 * p.aRow, aBytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, top, cBytes);
      _tile_stored(1, top + 16, cBytes);
      _tile_stored(2, bottom, cBytes);
      _tile_stored(3, bottom + 16, cBytes);
    }
  __asm__ volatile("" ::: "memory");
}

/// The matrix unit's eight registers: 16 rows of 64 bytes each.
struct alignas(64) TileSizes {
  std::uint8_t palette = 1, startRow = 0, reserved[14] = {};
  std::uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileSizes) == 64, "as the processor reads it");

// Not a local variable: gcc 12 does not see that all of it is read.
constexpr TileSizes kTileSizes;

FSDP_MATRIX_UNIT void takeMatrixUnit() { _tile_loadconfig(&kTileSizes); }
FSDP_MATRIX_UNIT void leaveMatrixUnit() { _tile_release(); }

} // namespace

PairInstructions pairInstructions() {
  static const PairInstructions best = [] {
    // The library queries the processor, and requests the matrix unit's registers from the system.
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto has = [&](dnnl::cpu_isa wanted) {
      return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
    };
    if (has(dnnl::cpu_isa::avx512_core_amx))
      return PairInstructions::Matrices;
    return has(dnnl::cpu_isa::avx512_core_bf16) ? PairInstructions::Vectors
                                                : PairInstructions::None;
  }();
  return best;
}

PairMultiplier::PairMultiplier(PairInstructions instructions)
    : perform(multiplyVectors), matrices(instructions == PairInstructions::Matrices) {
  if (matrices) {
    perform = multiplyMatrices;
    takeMatrixUnit();
  }
}

PairMultiplier::~PairMultiplier() {
  if (matrices)
    leaveMatrixUnit();
}

#else

PairInstructions pairInstructions() { return PairInstructions::None; }
PairMultiplier::PairMultiplier(PairInstructions) : perform(nullptr), matrices(false) {}
PairMultiplier::~PairMultiplier() = default;

#endif

} // namespace fsdp::rt
