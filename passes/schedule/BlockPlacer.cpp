//===- BlockPlacer.cpp - best fit over interference -----------------------===//

#include "passes/schedule/BlockPlacer.h"
#include "passes/schedule/OccupiedBytes.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

namespace {

/// A gap for a block of `size` bytes, found by passing the occupied ranges in the order of their
/// beginnings.
class GapSearch {
public:
  GapSearch(int64_t size, Fit fit) : size(size), fit(fit) {}

  /// True: the gap is found, no other range matters.
  bool pass(int64_t begin, int64_t rangeEnd) {
    int64_t gap = begin - end;
    if (gap >= size && gap < tightest) {
      best = end;
      tightest = gap;
      if (fit == Fit::lowest)
        return true;
    }
    end = std::max(end, rangeEnd);
    return false;
  }
  /// The offset of the gap, or above all ranges.
  int64_t offset() const { return best >= 0 ? best : end; }

private:
  int64_t size;
  Fit fit;
  int64_t end = 0, best = -1, tightest = std::numeric_limits<int64_t>::max();
};

} // namespace

BlockPlacer::BlockPlacer(const Interference &interference, size_t maxPairs)
    : interference(interference) {
  size_t count = interference.getBlocks().size();
  if (count > maxPairs)
    return;
  rows.assign(count, std::vector<uint64_t>((count + 63) / 64));
  auto set = [&](size_t x, size_t y) { rows[x][y / 64] |= uint64_t(1) << y % 64; };
  for (size_t x = 0; x < count; ++x) {
    auto [from, until] = interference.spanOf(static_cast<int>(x));
    for (size_t y = 0; y < count; ++y) {
      auto [otherFrom, otherUntil] = interference.spanOf(static_cast<int>(y));
      if (from < otherUntil && otherFrom < until)
        set(x, y);
    }
    for (int y : interference.interferingApart(static_cast<int>(x)))
      set(x, y);
  }
}

Placement BlockPlacer::place(const std::vector<int> &order, Fit fit, int64_t limit) const {
  if (rows.empty())
    return placeByTimes(order, fit, limit);
  Placement result{std::vector<int64_t>(rows.size(), -1), 0, {}};
  result.placed.reserve(order.size());
  return placeByPairs(order, 0, std::move(result), fit, limit);
}

Placement BlockPlacer::replace(const std::vector<int> &order, size_t kept,
                               const Placement &previous, Fit fit, int64_t limit) const {
  if (rows.empty())
    return placeByTimes(order, fit, limit);
  Placement result{std::vector<int64_t>(rows.size(), -1), 0, {}};
  for (size_t i = 0; i < kept; ++i) {
    int block = order[i];
    result.offsets[block] = previous.offsets[block];
    result.height =
        std::max(result.height, previous.offsets[block] + interference.getBlocks()[block].bytes);
  }
  result.placed.reserve(order.size());
  for (const PlacedBlock &block : previous.placed)
    if (result.offsets[block.block] >= 0)
      result.placed.push_back(block);
  return placeByPairs(order, kept, std::move(result), fit, limit);
}

Placement BlockPlacer::placeByPairs(const std::vector<int> &order, size_t kept, Placement result,
                                    Fit fit, int64_t limit) const {
  const std::vector<Block> &blocks = interference.getBlocks();
  std::vector<PlacedBlock> &placed = result.placed;
  auto byBegin = [](const PlacedBlock &a, const PlacedBlock &b) { return a.begin < b.begin; };
  for (size_t i = kept; i < order.size() && result.height < limit; ++i) {
    int block = order[i];
    int64_t &offset = result.offsets[block], size = blocks[block].size;
    if (size == 0) { // has no bytes to share
      offset = 0;
      continue;
    }
    const uint64_t *row = rows[block].data();
    GapSearch gaps(size, fit);
    for (const PlacedBlock &other : placed) {
      const auto bit = static_cast<unsigned>(other.block);
      // Without a branch on the bit, which processors could not predict: a block that may share the
      // bytes passes as an empty range.
      const auto interferes = static_cast<int64_t>(row[bit / 64] >> bit % 64 & 1);
      if (gaps.pass(other.begin * interferes, other.end * interferes))
        break;
    }
    offset = gaps.offset();
    PlacedBlock entry{offset, offset + size, block};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), entry, byBegin), entry);
    result.height = std::max(result.height, offset + blocks[block].bytes);
  }
  return result;
}

Placement BlockPlacer::placeByTimes(const std::vector<int> &order, Fit fit, int64_t limit) const {
  const std::vector<Block> &blocks = interference.getBlocks();
  Placement result{std::vector<int64_t>(blocks.size(), -1), 0, {}};
  OccupiedBytes occupied(interference.getNumLaunches());
  std::vector<ByteRange> beside;
  ByteRangeUnion ranges;
  for (int block : order) {
    int64_t &offset = result.offsets[block], size = blocks[block].size;
    if (size == 0) { // has no bytes to share
      offset = 0;
      continue;
    }
    auto [from, until] = interference.spanOf(block);
    beside.clear();
    for (int other : interference.interferingApart(block))
      if (int64_t begin = result.offsets[other]; begin >= 0)
        beside.push_back({begin, begin + blocks[other].size});
    std::sort(beside.begin(), beside.end(),
              [](const ByteRange &a, const ByteRange &b) { return a.begin < b.begin; });
    ranges.clear();
    ranges.add(beside);
    occupied.collect(from, until, ranges);
    GapSearch gaps(size, fit);
    for (const ByteRange &range : ranges.take())
      if (gaps.pass(range.begin, range.end))
        break;
    offset = gaps.offset();
    occupied.occupy(from, until, {offset, offset + size});
    result.height = std::max(result.height, offset + blocks[block].bytes);
    if (result.height >= limit)
      break;
  }
  return result;
}
