//===- BlockPlacer.h - places for blocks, one after another -----*- C++ -*-===//

#ifndef PASSES_SCHEDULE_BLOCKPLACER_H
#define PASSES_SCHEDULE_BLOCKPLACER_H

#include "passes/schedule/Interference.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace mlir::fsdp::schedule {

/// A placed block: bytes [begin, end), which are not empty.
struct PlacedBlock {
  int64_t begin, end;
  int block;
};

/// Places for the blocks of one segment, from 0.
struct Placement {
  std::vector<int64_t> offsets; ///< -1: not placed, because the height had reached the limit
  int64_t height = 0;           ///< bytes: where the last block ends
  /// The blocks that have bytes, upwards by beginning, if `BlockPlacer` compared them in pairs.
  std::vector<PlacedBlock> placed = {};
};

enum class Fit { lowest, tightest };

/// Places blocks one at a time in an order, each in the lowest or the tightest gap between the
/// blocks placed before that it interferes with, or above all of them.
class BlockPlacer {
public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  /// Up to `maxPairs` blocks, each is compared with all that are placed; above that number, a
  /// search over times finds the occupied bytes faster. Both produce the same placement.
  explicit BlockPlacer(const Interference &interference, size_t maxPairs = 2048);

  /// Stops early once the height is at least `limit` bytes.
  Placement place(const std::vector<int> &order, Fit fit, int64_t limit = kNoLimit) const;
  /// As above, of an order that is one with the complete placement `previous`, in which the blocks
  /// `moved` have other places; the first `kept` blocks are the same, and therefore keep their
  /// positions.
  Placement replace(const std::vector<int> &order, size_t kept, const std::vector<int> &moved,
                    const Placement &previous, Fit fit, int64_t limit) const;

private:
  int64_t findOffset(int block, const std::vector<PlacedBlock> &placed, Fit fit) const;
  void enter(int block, int64_t offset, Placement &placement) const;
  Placement placeByTimes(const std::vector<int> &order, Fit fit, int64_t limit) const;

  const Interference &interference;
  /// For each block a row of bits, those of the blocks that it interferes with; empty beyond
  /// `maxPairs` blocks.
  std::vector<std::vector<uint64_t>> rows;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_BLOCKPLACER_H
