//===- MemoryPlanner.cpp - orders of blocks in which best fit needs least -===//

#include "passes/schedule/MemoryPlanner.h"
#include "passes/schedule/BlockPlacer.h"
#include "passes/schedule/Interference.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir::fsdp::schedule;

namespace {

int64_t roundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// An improvement stops after about this many comparisons of blocks: a fraction of a second.
constexpr int64_t kEffort = 40'000'000;
/// Other orders are tried while the result exceeds the lower bound by more than this fraction.
constexpr int64_t kFairShare = 64;
/// The same where there are too many blocks for improvements: each order takes long.
constexpr int64_t kFairShareOfMany = 4096;

/// An order of blocks, and where it places them.
struct Start {
  std::vector<int> order;
  Fit fit;
  Placement placement;
};

/// Searches for orders that need less.
class Improvement {
public:
  /// `good`: bytes with which it is content.
  Improvement(const Interference &interference, const BlockPlacer &placer, int64_t good)
      : placer(placer), blocks(interference.getBlocks()), good(good) {}

  /// The highest block was placed too late: move it forward, first by a fixed stride and then by
  /// others, as long as the result does not get worse.
  Placement run(const Start &start, int64_t rounds) {
    const int count = static_cast<int>(blocks.size());
    std::vector<int> order = start.order;
    Placement best = start.placement, current = best;
    for (int64_t round = 0; round < rounds && best.height > good; ++round) {
      std::vector<int> candidate = order;
      int top = 0;
      for (int i = 0; i < count; ++i)
        if (current.offsets[order[i]] + blocks[order[i]].bytes == current.height)
          top = i;
      int first;                        // of the places in the order that change
      std::vector<int> moved;           // other blocks keep their order
      if (round % 4 == 3 || top == 0) { // now and then a change without a reason
        int one = draw(count), other = draw(count);
        std::swap(candidate[one], candidate[other]);
        moved = {candidate[one], candidate[other]};
        first = std::min(one, other);
      } else {
        first = draw(top);
        moved = {candidate[top]};
        std::rotate(candidate.begin() + first, candidate.begin() + top,
                    candidate.begin() + top + 1);
      }
      // A placement that is higher than the current one is rejected.
      Placement placement =
          placer.replace(candidate, first, moved, current, start.fit, current.height + 1);
      if (placement.height > current.height)
        continue;
      order = std::move(candidate);
      if (placement.height < best.height)
        best = placement;
      current = std::move(placement);
    }
    return best;
  }

private:
  int draw(int below) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return static_cast<int>(random % static_cast<uint64_t>(below));
  }

  const BlockPlacer &placer;
  const std::vector<Block> &blocks;
  int64_t good;
  uint64_t random = 0x9e3779b97f4a7c15u;
};

Placement placeWell(const Interference &interference, int64_t lowerBound) {
  const std::vector<Block> &blocks = interference.getBlocks();
  int count = static_cast<int>(blocks.size());
  std::vector<int64_t> pressure = interference.sumInterfering();
  std::vector<int> byTime(count);
  std::iota(byTime.begin(), byTime.end(), 0);
  auto decreasing = [&](auto &&weight) {
    std::vector<int> order = byTime;
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return std::make_pair(-weight(a), a) < std::make_pair(-weight(b), b);
    });
    return order;
  };
  std::vector<int> bySize = decreasing([&](int x) { return blocks[x].size; });
  std::vector<int> byPressure = decreasing([&](int x) { return pressure[x]; });

  // A search only for the topmost block, and thus for its padding, is not worthwhile.
  const int64_t good = roundUp(lowerBound);
  int64_t rounds = count < 2 ? 0 : kEffort / (static_cast<int64_t>(count) * count);
  rounds = std::min<int64_t>(rounds, 2000);
  // Without a search, the lowest placement is used.
  const int64_t enough = rounds == 0 ? good + good / kFairShareOfMany : good;
  int64_t limit = BlockPlacer::kNoLimit;
  BlockPlacer placer(interference);
  std::vector<Start> starts;
  for (const std::vector<int> &order : {bySize, byPressure, byTime})
    for (Fit fit : {Fit::tightest, Fit::lowest}) {
      Placement placement = placer.place(order, fit, limit);
      if (placement.height <= enough)
        return placement;
      if (placement.height >= limit)
        continue;
      if (rounds == 0)
        limit = placement.height;
      starts.push_back({order, fit, std::move(placement)});
    }
  for (size_t i = 0; i < starts.size(); ++i) // the first of equals first
    for (size_t j = i; j > 0 && starts[j].placement.height < starts[j - 1].placement.height; --j)
      std::swap(starts[j], starts[j - 1]);

  Improvement improvement(interference, placer, good);
  Placement best = improvement.run(starts.front(), rounds);
  // If the search gains little, another start may gain more; most schedules do not get here.
  for (size_t i = 1; i < starts.size() && best.height > good + good / kFairShare; ++i) {
    Placement other = improvement.run(starts[i], rounds);
    if (other.height < best.height)
      best = std::move(other);
  }
  return best;
}

} // namespace

MemoryPlan mlir::fsdp::schedule::planMemory(const Role &role) {
  MemoryPlan plan;
  plan.offsets.assign(role.buffers.size(), -1);
  for (size_t i = 0; i < role.buffers.size(); ++i)
    if (role.buffers[i].isPersistent()) {
      plan.offsets[i] = plan.persistent;
      plan.arena = plan.persistent + role.buffers[i].size;
      plan.persistent += roundUp(role.buffers[i].size);
    }
  plan.lowerBound = plan.arena;
  for (size_t s = 0; s < role.segments.size(); ++s) {
    Interference interference(role, static_cast<int>(s));
    if (interference.getBlocks().empty())
      continue;
    int64_t bound = interference.lowerBound();
    Placement placement = placeWell(interference, bound);
    for (size_t x = 0; x < interference.getBlocks().size(); ++x)
      for (int buffer : interference.getBlocks()[x].buffers)
        plan.offsets[buffer] = plan.persistent + placement.offsets[x];
    plan.arena = std::max(plan.arena, plan.persistent + placement.height);
    plan.lowerBound = std::max(plan.lowerBound, plan.persistent + bound);
  }
  return plan;
}

void mlir::fsdp::schedule::applyPlan(const MemoryPlan &plan, Role &role) {
  for (size_t i = 0; i < role.buffers.size(); ++i)
    role.buffers[i].offset = plan.offsets[i];
  role.arena = plan.arena;
}

std::vector<int64_t> mlir::fsdp::schedule::peaksOf(const Role &role, const SegmentTouches &touches,
                                                   const std::vector<std::vector<bool>> &sets) {
  std::vector<int64_t> peaks;
  for (const std::vector<bool> &wanted : sets) {
    Interference interference(role, touches, &wanted);
    std::vector<int64_t> bytes;
    for (const Block &block : interference.getBlocks())
      bytes.push_back(block.bytes);
    int64_t &sum = peaks.emplace_back(0);
    for (int x : interference.heaviestTogether(bytes))
      sum += bytes[x];
  }
  return peaks;
}
