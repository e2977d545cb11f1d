//===- PairTiles.h - blocks of bf16 in the order that processors multiply ---*- C++ -*-===//
//
// The processor's instructions for bf16 multiply pairs of neighbouring terms of a sum. So both
// sides of a product are copied into tiles of 16 lines of 16 pairs, 1 KiB, which AMX's instructions
// load as they are, and a line of which is a vector of the others'.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PAIRTILES_H
#define FSDP_RUNTIME_PAIRTILES_H

#include "runtime/BFloat16.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Of a left side: line i holds 32 terms of row i. Of a right side: line p holds terms 2p and
/// 2p + 1 of 16 columns.
struct alignas(64) PairTile {
  static constexpr std::int64_t kLines = 16, kTerms = 32;
  std::uint32_t pairs[16][16];
};

/// Blocks of the result are 32 x 32: two tiles of either side for each 32 terms.
constexpr std::int64_t kPairBlock = 2 * PairTile::kLines;

/// One side of a product, seen as lines: rows of a left side, columns of a right one. Strides are
/// in elements; one of them is 1.
struct PairLines {
  std::int64_t lines, terms;
  std::int64_t lineStride, termStride;
};

/// Which of the processor's instructions multiply pairs; None where it has none.
enum class PairInstructions { None, Vectors, Tiles };

/// The best that the processor has and oneDNN's limit (ONEDNN_MAX_CPU_ISA) allows; the same during
/// all of the process.
PairInstructions pairInstructions();

/// Tiles that `lines` lines of `terms` terms take: both are filled up with zeros, to whole blocks.
constexpr std::int64_t tilesOf(std::int64_t lines, std::int64_t terms) {
  return (lines + kPairBlock - 1) / kPairBlock * 2 *
         ((terms + PairTile::kTerms - 1) / PairTile::kTerms);
}

/// Copies `x.lines` lines into tiles: of each 32 lines, the two tiles of the first 32 terms, then
/// those of the next.
void packLeft(const PairLines &x, const bf16 *from, PairTile *to);
void packRight(const PairLines &x, const bf16 *from, PairTile *to);

/// to[i, j] = from[i, j] + the sum over `steps` * 32 terms, of a block of 32 x 32 floats whose rows
/// are `toStride` and `fromStride` floats apart; without `from`, 0 is added to. `from` may be `to`.
/// Sums are in float; subnormal numbers count as zero.
using MultiplyPairs = void (*)(const PairTile *left, const PairTile *right, std::int64_t steps,
                               const float *from, std::int64_t fromStride, float *to,
                               std::int64_t toStride);

/// While one lives, `multiply` may be called on this thread.
class PairMultiplier {
public:
  explicit PairMultiplier(PairInstructions instructions);
  ~PairMultiplier();
  PairMultiplier(const PairMultiplier &) = delete;
  PairMultiplier &operator=(const PairMultiplier &) = delete;

  MultiplyPairs multiply;

private:
  bool tiles;
};

/// Stores the first rows x columns of a block, rounded to the type of `to`; `add` adds what it
/// holds before that.
void storeBlock(const float *block, std::int64_t rows, std::int64_t columns, bool add, float *to,
                std::int64_t stride);
void storeBlock(const float *block, std::int64_t rows, std::int64_t columns, bool add, bf16 *to,
                std::int64_t stride);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PAIRTILES_H
