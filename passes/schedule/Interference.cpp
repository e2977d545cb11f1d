//===- Interference.cpp - lives of buffers and their partial order --------===//

#include "passes/schedule/Interference.h"
#include "passes/schedule/HeaviestAntichain.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir::fsdp::schedule;

namespace {

/// The launches of `segment` that touch each buffer of a role, in issue order.
std::vector<llvm::SmallVector<int, 4>> collectTouches(const Role &role, const Segment &segment) {
  std::vector<llvm::SmallVector<int, 4>> touches(role.buffers.size());
  for (size_t i = 0; i < segment.launches.size(); ++i) {
    int launch = static_cast<int>(i);
    auto add = [&](const Access &access) {
      llvm::SmallVector<int, 4> &known = touches[access.buffer];
      if (known.empty() || known.back() != launch)
        known.push_back(launch);
    };
    for (const Access &access : segment.launches[i].reads)
      add(access);
    for (const Access &access : segment.launches[i].writes)
      add(access);
  }
  return touches;
}

/// True iff `access` is the whole of its buffer.
bool isWhole(const Role &role, const Access &access) {
  return access.begin == 0 && access.end == role.buffers[access.buffer].size;
}

} // namespace

SegmentTouches::SegmentTouches(const Role &role, int segment)
    : segment(segment), order(role.segments[segment].launches),
      touches(collectTouches(role, role.segments[segment])), onStream(order.getNumStreams()) {
  for (int launch = 0; launch < order.size(); ++launch)
    onStream[order.streamOf(launch)].push_back(launch);
}

Interference::Interference(const Role &role, const SegmentTouches &of,
                           const std::vector<bool> *wanted, bool merge) {
  const Segment &segment = role.segments[of.segment];
  const HappensBefore &order = of.order;
  const std::vector<llvm::SmallVector<int, 4>> &touches = of.touches;

  std::vector<int> blockOf(role.buffers.size(), -1);
  for (size_t i = 0; i < role.buffers.size(); ++i) {
    const Buffer &buffer = role.buffers[i];
    if (buffer.segment != of.segment || (wanted && !(*wanted)[i]))
      continue;
    blockOf[i] = static_cast<int>(blocks.size());
    int64_t rounded = (buffer.size + kAlignment - 1) / kAlignment * kAlignment;
    blocks.push_back({{static_cast<int>(i)}, buffer.size, rounded});
  }

  // In place: launch L may read A and write B at one place where nothing else of A is after L and
  // nothing else of B is before it.
  if (merge)
    for (size_t l = 0; l < segment.launches.size(); ++l) {
      const Launch &launch = segment.launches[l];
      for (auto [readIndex, writeIndex] : launch.inPlace) {
        const Access &read = launch.reads[readIndex], &write = launch.writes[writeIndex];
        int a = blockOf[read.buffer], b = blockOf[write.buffer];
        if (a < 0 || b < 0 || a == b || !isWhole(role, read) || !isWhole(role, write) ||
            role.buffers[read.buffer].size != role.buffers[write.buffer].size)
          continue;
        // Each buffer is joined once: A must be the last of its block, B the first of its block.
        if (blocks[a].buffers.back() != read.buffer || blocks[b].buffers.front() != write.buffer)
          continue;
        auto onlyOnce = [&](const std::vector<Access> &accesses, int buffer) {
          return std::count_if(accesses.begin(), accesses.end(),
                               [&](const Access &x) { return x.buffer == buffer; });
        };
        if (onlyOnce(launch.reads, read.buffer) != 1 || onlyOnce(launch.writes, read.buffer) ||
            onlyOnce(launch.writes, write.buffer) != 1 || onlyOnce(launch.reads, write.buffer))
          continue;
        // Buffers of the two blocks that were joined before, or will be joined later, are further
        // away in time.
        int at = static_cast<int>(l);
        bool lastOfA = llvm::all_of(touches[read.buffer], [&](int touch) {
          return touch == at || order.before(touch, at);
        });
        bool firstOfB = llvm::all_of(touches[write.buffer], [&](int touch) {
          return touch == at || order.before(at, touch);
        });
        if (!lastOfA || !firstOfB)
          continue;
        for (int buffer : blocks[b].buffers) {
          blocks[a].buffers.push_back(buffer);
          blockOf[buffer] = a;
        }
        blocks[b].buffers.clear();
      }
    }
  blocks.erase(std::remove_if(blocks.begin(), blocks.end(),
                              [](const Block &block) { return block.buffers.empty(); }),
               blocks.end());

  lives.assign(blocks.size(), LiveRange(order));
  for (size_t x = 0; x < blocks.size(); ++x)
    for (int buffer : blocks[x].buffers)
      for (int launch : touches[buffer])
        lives[x].touch(order, launch);

  // On each stream the launches after x are all from some launch on.
  mayFollow.assign(blocks.size(), order.size());
  mustFollow.assign(blocks.size(), 0);
  for (size_t x = 0; x < blocks.size(); ++x) {
    // Most are touched on one stream or two.
    llvm::SmallVector<std::pair<size_t, int>, 4> needed;
    for (auto [stream, end] : llvm::enumerate(lives[x].getEnds()))
      if (end > 0)
        needed.emplace_back(stream, end);
    for (const std::vector<int> &launches : of.onStream) {
      // Most blocks are short-lived: the first launch that follows is near the first touch.
      auto from = std::upper_bound(launches.begin(), launches.end(), lives[x].firstLaunch());
      auto isEarly = [&](int launch) {
        llvm::ArrayRef<int> clock = order.clockOf(launch);
        return llvm::any_of(needed, [&](auto need) { return need.second > clock[need.first]; });
      };
      std::ptrdiff_t step = 1;
      auto until = from;
      while (until != launches.end() && isEarly(*until)) {
        from = std::next(until);
        until += std::min(step, launches.end() - until);
        step *= 2;
      }
      auto follows = std::partition_point(from, until, isEarly);
      if (follows != launches.end())
        mayFollow[x] = std::min(mayFollow[x], *follows);
      if (follows != launches.begin())
        mustFollow[x] = std::max(mustFollow[x], *std::prev(follows) + 1);
    }
  }
  numLaunches = order.size();
  findInterferingApart();
}

std::vector<std::pair<int, int>> Interference::sortByFirstLaunch() const {
  std::vector<std::pair<int, int>> byFirst;
  for (size_t y = 0; y < blocks.size(); ++y)
    byFirst.push_back({lives[y].firstLaunch(), static_cast<int>(y)});
  std::sort(byFirst.begin(), byFirst.end());
  return byFirst;
}

void Interference::findInterferingApart() {
  std::vector<std::pair<int, int>> byFirst = sortByFirstLaunch();
  apart.assign(blocks.size(), {});
  for (size_t x = 0; x < blocks.size(); ++x) {
    if (!lives[x].isTouched())
      continue;
    // The later of two blocks starts after the span of the earlier one, but need not be ordered
    // after it.
    for (auto at =
             std::lower_bound(byFirst.begin(), byFirst.end(), std::make_pair(mayFollow[x], -1));
         at != byFirst.end() && at->first < mustFollow[x]; ++at)
      if (int number = static_cast<int>(x); interfere(number, at->second)) {
        apart[x].push_back(at->second);
        apart[at->second].push_back(number);
      }
  }
  for (std::vector<int> &others : apart)
    llvm::sort(others);
}

std::vector<int64_t> Interference::sumInterfering() const {
  // Spans overlap unless one ends before the other starts: those are counted off the sum of all.
  std::vector<int64_t> starting(numLaunches + 1), ended(numLaunches + 1); // at each launch
  for (size_t x = 0; x < blocks.size(); ++x)
    if (auto [from, until] = spanOf(static_cast<int>(x)); from < until) {
      starting[from] += blocks[x].size;
      ended[until] += blocks[x].size;
    }
  std::partial_sum(starting.begin(), starting.end(), starting.begin());
  std::partial_sum(ended.begin(), ended.end(), ended.begin());
  std::vector<int64_t> sums;
  for (size_t x = 0; x < blocks.size(); ++x) {
    auto [from, until] = spanOf(static_cast<int>(x));
    int64_t &sum =
        sums.emplace_back(from == until ? blocks[x].size : starting[until - 1] - ended[from]);
    for (int other : apart[x])
      sum += blocks[other].size;
  }
  return sums;
}

std::vector<std::vector<int>> Interference::directSuccessors() const {
  // No block that is before another has a later first launch than that one.
  std::vector<std::pair<int, int>> byFirst = sortByFirstLaunch();
  std::vector<std::vector<int>> successors(blocks.size());
  for (size_t x = 0; x < blocks.size(); ++x) {
    int number = static_cast<int>(x);
    int from = lives[x].isTouched() ? mayFollow[x] : -1;
    int until = std::numeric_limits<int>::max(); // all further blocks are after a known successor
    for (auto at = std::lower_bound(byFirst.begin(), byFirst.end(), std::make_pair(from, -1));
         at != byFirst.end() && at->first < until; ++at) {
      int y = at->second;
      if (y == number || !before(number, y) ||
          llvm::any_of(successors[x], [&](int between) { return before(between, y); }))
        continue;
      successors[x].push_back(y);
      until = std::min(until, mustFollow[y]);
    }
  }
  return successors;
}

std::vector<int> Interference::heaviestTogether(const std::vector<int64_t> &weights) const {
  // A block begins before those that it precedes.
  std::vector<int> order;
  for (auto [first, block] : sortByFirstLaunch())
    order.push_back(block);
  return findHeaviestAntichain(directSuccessors(), order, weights);
}

std::vector<int> Interference::heaviestTogether() const {
  std::vector<int64_t> sizes;
  for (const Block &block : blocks)
    sizes.push_back(block.size);
  return heaviestTogether(sizes);
}

int64_t Interference::bytesTogether(const std::vector<int> &together) const {
  int64_t sum = 0, slack = 0;
  for (int x : together) {
    sum += blocks[x].size;
    slack = std::max(slack, blocks[x].size - blocks[x].bytes);
  }
  return sum - slack;
}
