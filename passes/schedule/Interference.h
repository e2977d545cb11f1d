//===- Interference.h - buffers that may share bytes ------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_INTERFERENCE_H
#define PASSES_SCHEDULE_INTERFERENCE_H

#include "passes/schedule/HappensBefore.h"

namespace mlir::fsdp::schedule {

/// Buffers at one offset, because each replaces the previous one in a launch that works in place.
struct Block {
  std::vector<int> buffers; ///< indices in the role, in the order of their lifetimes
  int64_t bytes = 0;        ///< of each block
  int64_t size = 0;         ///< bytes, rounded up to the alignment
};

/// The order of the launches of a segment, and which of them touch each buffer of its role, in
/// issue order.
struct SegmentTouches {
  SegmentTouches(const Role &role, int segment);

  int segment; ///< index in the role
  HappensBefore order;
  std::vector<llvm::SmallVector<int, 4>> touches; ///< by buffer
  std::vector<std::vector<int>> onStream;         ///< the launches of each stream
};

/// The transient buffers of one segment as blocks, and the order of their lifetimes. Block x is
/// before block y iff every access of x is complete when the first of y starts; blocks of which
/// neither is before the other interfere and must not share bytes.
class Interference {
public:
  /// Takes the buffers of `segment` for which `wanted` holds; null: all of them. `merge`: join
  /// buffers where a launch may work in place.
  Interference(const Role &role, int segment, const std::vector<bool> *wanted = nullptr,
               bool merge = true)
      : Interference(role, SegmentTouches(role, segment), wanted, merge) {}
  Interference(const Role &role, const SegmentTouches &of,
               const std::vector<bool> *wanted = nullptr, bool merge = true);

  const std::vector<Block> &getBlocks() const { return blocks; }
  bool before(int x, int y) const {
    // Blocks without accesses have no contents: they precede all others, one after another.
    if (!lives[x].isTouched())
      return lives[y].isTouched() || x < y;
    return lives[y].isTouched() && lives[x].before(lives[y]);
  }
  bool interfere(int x, int y) const {
    // Most pairs are far apart in issue order, or one contains the other.
    int firstX = lives[x].firstLaunch(), firstY = lives[y].firstLaunch();
    if (firstX >= 0 && firstY >= 0) {
      if (firstY >= mustFollow[x] || firstX >= mustFollow[y])
        return false;
      if (firstY < mayFollow[x] && firstX < mayFollow[y])
        return x != y;
    }
    return x != y && !before(x, y) && !before(y, x);
  }

  /// How many launches the segment has.
  int getNumLaunches() const { return numLaunches; }
  /// The launches, as a half-open range in issue order, at whose times `x` certainly is live:
  /// blocks with overlapping ranges interfere. Empty for a block without accesses.
  std::pair<int, int> spanOf(int x) const {
    return lives[x].isTouched() ? std::make_pair(lives[x].firstLaunch(), mayFollow[x])
                                : std::make_pair(0, 0);
  }
  /// The blocks that interfere with `x` although their spans do not overlap, as concurrent streams
  /// touch them, upwards.
  const std::vector<int> &interferingApart(int x) const { return apart[x]; }
  /// For each block, its size and that of all that interfere with it, in bytes.
  std::vector<int64_t> sumInterfering() const;

  /// Blocks of which each two interfere, with the largest sum of `weights` (one for each block):
  /// they need that much memory together.
  std::vector<int> heaviestTogether(const std::vector<int64_t> &weights) const;

  /// Those with the largest sum of sizes.
  std::vector<int> heaviestTogether() const;
  /// Bytes of the blocks `together`, of which each two interfere. Only the last one need not be
  /// rounded up.
  int64_t bytesTogether(const std::vector<int> &together) const;

  /// No plan needs fewer bytes than this, parts of buffers and choices of operands to replace
  /// aside.
  int64_t lowerBound() const { return bytesTogether(heaviestTogether()); }

private:
  /// The blocks that `x` is before with no other between, for each x.
  std::vector<std::vector<int>> directSuccessors() const;
  /// The blocks by first launch, each with its number.
  std::vector<std::pair<int, int>> sortByFirstLaunch() const;
  /// Fills `apart`.
  void findInterferingApart();

  std::vector<Block> blocks;
  std::vector<LiveRange> lives; ///< of each block
  /// For each block, the first launch in issue order that it is before, and the first from which on
  /// it is before all. Launches between must be tested one by one.
  std::vector<int> mayFollow, mustFollow;
  std::vector<std::vector<int>> apart; ///< for each block, see interferingApart
  int numLaunches = 0;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_INTERFERENCE_H
