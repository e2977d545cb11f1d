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
  for (size_t i = 0; i < order.size() && result.height < limit; ++i)
    enter(order[i], findOffset(order[i], result.placed, fit), result);
  return result;
}

Placement BlockPlacer::replace(const std::vector<int> &order, size_t kept,
                               const std::vector<int> &moved, const Placement &previous, Fit fit,
                               int64_t limit) const {
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
  // The blocks that moved in the order or to another offset: one that interferes with none of them
  // has the same blocks beside it as before.
  std::vector<uint64_t> changed(rows.front().size());
  auto change = [&](int block) { changed[block / 64] |= uint64_t(1) << block % 64; };
  for (int block : moved)
    change(block);
  for (size_t i = kept; i < order.size() && result.height < limit; ++i) {
    const int block = order[i];
    const std::vector<uint64_t> &row = rows[block];
    uint64_t beside = changed[block / 64] >> block % 64 & 1;
    for (size_t word = 0; word < row.size(); ++word)
      beside |= row[word] & changed[word];
    const int64_t before = previous.offsets[block],
                  offset = beside ? findOffset(block, result.placed, fit) : before;
    if (offset != before)
      change(block);
    enter(block, offset, result);
  }
  return result;
}

/// The place of `block` between those of `placed`, which are sorted by beginning.
int64_t BlockPlacer::findOffset(int block, const std::vector<PlacedBlock> &placed, Fit fit) const {
  const int64_t size = interference.getBlocks()[block].size;
  if (size == 0) // has no bytes to share
    return 0;
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
  return gaps.offset();
}

/// Places `block` at `offset`.
void BlockPlacer::enter(int block, int64_t offset, Placement &placement) const {
  placement.offsets[block] = offset;
  const Block &entered = interference.getBlocks()[block];
  if (entered.size == 0)
    return;
  PlacedBlock entry{offset, offset + entered.size, block};
  auto byBegin = [](const PlacedBlock &a, const PlacedBlock &b) { return a.begin < b.begin; };
  std::vector<PlacedBlock> &placed = placement.placed;
  placed.insert(std::upper_bound(placed.begin(), placed.end(), entry, byBegin), entry);
  placement.height = std::max(placement.height, offset + entered.bytes);
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
