//===- PairProduct.cpp ----------------------------------------------------===//

#include "runtime/PairProduct.h"

#include <algorithm>

namespace fsdp::rt {

namespace {

/// Of a packed block of rows, and of a panel of columns: together they leave room in a cache of
/// 2 MiB.
constexpr std::int64_t kLeftBytes = std::int64_t(1) << 20, kPanelBytes = std::int64_t(1) << 19;
/// Of all of a right side that is packed before.
constexpr std::int64_t kRightBytes = std::int64_t(12) << 20;
/// Of sums that wait for their next part.
constexpr std::int64_t kSumBytes = std::int64_t(3) << 19;
/// Terms of one part of a sum, at most, and rows of a block where they do not fit otherwise.
constexpr std::int64_t kTerms = 1024, kRows = 512;
/// Rows of a block where the packed right side stays in the cache: few, so that what is done with
/// rows next finds them there as well.
constexpr std::int64_t kFewRows = 256, kCachedBytes = std::int64_t(5) << 18;
/// Tiles of terms that a block of 32 x 32 sums at once: the two sides stay in the first cache.
constexpr std::int64_t kSteps = 8, kMostSteps = 12;
constexpr std::int64_t kBlockFloats = kPairBlock * kPairBlock;

constexpr std::int64_t cuts(std::int64_t extent, std::int64_t by) { return (extent + by - 1) / by; }
constexpr std::int64_t roundUp(std::int64_t extent, std::int64_t to) {
  return cuts(extent, to) * to;
}

/// The extent of parts of at most `most`, all but the last equal and a multiple of `unit`.
std::int64_t evenParts(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  most = std::max(most / unit * unit, unit);
  return roundUp(cuts(extent, cuts(extent, most)), unit);
}

/// Parts in which a block of 32 x 32 sums `steps` tiles.
constexpr std::int64_t chunksOf(std::int64_t steps) {
  return steps <= kMostSteps ? 1 : cuts(steps, kSteps);
}

} // namespace

bool PairProduct::repays(const Shape &s) {
  return s.rows >= 2 * kPairBlock && s.columns >= 2 * kPairBlock && s.terms >= PairTile::kTerms;
}

PairProduct::PairProduct(const Shape &s, PairInstructions instructions)
    : shape(s), instructions(instructions) {
  const std::int64_t bytes = sizeof(bf16);
  blockTerms = evenParts(s.terms, s.terms <= 3 * kTerms / 2 ? s.terms + 31 : kTerms, 32);
  const bool parts = blockTerms < s.terms;
  const std::int64_t rightBytes =
      tilesOf(s.columns, s.terms) * static_cast<std::int64_t>(sizeof(PairTile));
  const std::int64_t rows = std::max(kLeftBytes / (blockTerms * bytes), kRows);
  keepsRight = !parts && s.rows > rows && rightBytes <= kRightBytes;
  if (!parts && s.rows > kFewRows && rightBytes <= kCachedBytes) {
    keepsRight = true;
    blockRows = evenParts(s.rows, kFewRows, kPairBlock);
  } else {
    blockRows = evenParts(s.rows, rows, kPairBlock);
  }
  groupColumns = roundUp(s.columns, kPairBlock);
  if (parts)
    groupColumns = evenParts(s.columns, kSumBytes / (blockRows * 4), kPairBlock);
  panelColumns =
      evenParts(std::min(groupColumns, s.columns),
                std::clamp<std::int64_t>(kPanelBytes / (blockTerms * bytes), 128, 512), kPairBlock);
  leftTiles = tilesOf(blockRows, blockTerms);
  rightTiles = tilesOf(panelColumns, blockTerms);
  if (keepsRight)
    rightTiles *= cuts(s.columns, panelColumns);
  sumBlocks =
      parts ? blockRows / kPairBlock * (groupColumns / kPairBlock) : panelColumns / kPairBlock;
}

std::size_t PairProduct::workspaceBytes() const {
  return static_cast<std::size_t>(leftTiles + rightTiles) * sizeof(PairTile) +
         static_cast<std::size_t>((sumBlocks + 1) * kBlockFloats) * sizeof(float);
}

/// One block of rows by one panel of columns by one part of the sum.
struct PairProduct::Block {
  const PairTile *left, *right;
  float *sums;            ///< of the first 32 x 32
  std::int64_t sumStride; ///< blocks between those of successive rows
  char *c;
  std::int64_t rows, columns, terms;
  bool first, last; ///< part of the sum
  float *scratch;
};

void PairProduct::multiply(const Block &x) const {
  // For each block anew: what is told of finished rows may use tiles for other things.
  const PairMultiplier multiplier(instructions);
  const MultiplyPairs multiply = multiplier.multiply;
  const std::int64_t steps = cuts(x.terms, PairTile::kTerms);
  const std::int64_t chunk = cuts(steps, chunksOf(steps));
  const std::int64_t size = static_cast<std::int64_t>(sizeInBytes(shape.out));
  for (std::int64_t row = 0; row < x.rows; row += kPairBlock)
    for (std::int64_t step = 0; step < steps; step += chunk) {
      const std::int64_t count = std::min(chunk, steps - step);
      const bool begins = x.first && step == 0, ends = x.last && step + count == steps;
      const std::int64_t rows = std::min(kPairBlock, x.rows - row);
      for (std::int64_t column = 0; column < x.columns; column += kPairBlock) {
        const PairTile *left = x.left + (row / kPairBlock * steps + step) * 2;
        const PairTile *right = x.right + (column / kPairBlock * steps + step) * 2;
        float *sums =
            x.sums + (row / kPairBlock * x.sumStride + column / kPairBlock) * kBlockFloats;
        const float *from = begins ? nullptr : sums;
        const std::int64_t columns = std::min(kPairBlock, x.columns - column);
        char *to = x.c + (row * shape.stride + column) * size;
        if (!ends) {
          multiply(left, right, count, from, kPairBlock, sums, kPairBlock);
          continue;
        }
        if (shape.out == DType::F32 && !shape.add && rows == kPairBlock && columns == kPairBlock) {
          multiply(left, right, count, from, kPairBlock, reinterpret_cast<float *>(to),
                   shape.stride);
          continue;
        }
        multiply(left, right, count, from, kPairBlock, x.scratch, kPairBlock);
        if (shape.out == DType::F32)
          storeBlock(x.scratch, rows, columns, shape.add, reinterpret_cast<float *>(to),
                     shape.stride);
        else
          storeBlock(x.scratch, rows, columns, shape.add, reinterpret_cast<bf16 *>(to),
                     shape.stride);
      }
    }
}

void PairProduct::run(const bf16 *a, const bf16 *b, void *c, void *workspace, RowsDone done) const {
  PairTile *const left = static_cast<PairTile *>(workspace), *const right = left + leftTiles;
  float *const scratch = reinterpret_cast<float *>(right + rightTiles), *const sums =
                                                                            scratch + kBlockFloats;
  const bool parts = blockTerms < shape.terms;
  const std::int64_t size = static_cast<std::int64_t>(sizeInBytes(shape.out));

  for (std::int64_t row = 0; row < shape.rows; row += blockRows) {
    const std::int64_t rows = std::min(blockRows, shape.rows - row);
    for (std::int64_t group = 0; group < shape.columns; group += groupColumns) {
      const std::int64_t groupEnd = std::min(group + groupColumns, shape.columns);
      for (std::int64_t term = 0; term < shape.terms; term += blockTerms) {
        const std::int64_t terms = std::min(blockTerms, shape.terms - term);
        const auto part = [&](PairLines x, std::int64_t lines) {
          return PairLines{lines, terms, x.lineStride, x.termStride};
        };
        packLeft(part(shape.left, rows),
                 a + row * shape.left.lineStride + term * shape.left.termStride, left);
        for (std::int64_t column = group; column < groupEnd; column += panelColumns) {
          const std::int64_t columns = std::min(panelColumns, groupEnd - column);
          PairTile *panel =
              right + (keepsRight ? column / panelColumns * tilesOf(panelColumns, blockTerms) : 0);
          if (!keepsRight || row == 0)
            packRight(part(shape.right, columns),
                      b + column * shape.right.lineStride + term * shape.right.termStride, panel);
          Block block{left,
                      panel,
                      sums,
                      0,
                      static_cast<char *>(c) + (row * shape.stride + column) * size,
                      rows,
                      columns,
                      terms,
                      term == 0,
                      term + terms == shape.terms,
                      scratch};
          if (parts) {
            block.sums += (column - group) / kPairBlock * kBlockFloats;
            block.sumStride = groupColumns / kPairBlock;
          }
          multiply(block);
        }
      }
    }
    if (done.call)
      done.call(done.self, row, row + rows);
  }
}

} // namespace fsdp::rt
