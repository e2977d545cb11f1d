//===- HappensBefore.h - the order of launches ------------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_HAPPENSBEFORE_H
#define PASSES_SCHEDULE_HAPPENSBEFORE_H

#include "passes/schedule/Problem.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>

namespace mlir::fsdp::schedule {

/// The nodes that each node depends on, in one array.
class Dependencies {
public:
  Dependencies() : begins{0} {}
  /// The list of node i is [begins[i], begins[i + 1]) of `all`.
  Dependencies(std::vector<int> begins, std::vector<int> all)
      : begins(std::move(begins)), all(std::move(all)) {}

  /// Adds `node` to the list that is open.
  void add(int node) { all.push_back(node); }
  /// Ends the list of a node, and opens that of the next one.
  void close() { begins.push_back(static_cast<int>(all.size())); }
  /// The number of nodes whose lists are closed.
  int size() const { return static_cast<int>(begins.size()) - 1; }
  llvm::ArrayRef<int> operator[](int node) const {
    return llvm::ArrayRef(all).slice(begins[node], begins[node + 1] - begins[node]);
  }

private:
  std::vector<int> begins, all;
};

/// The partial order that streams and waits put on the launches of a segment: `before(a, b)` is
/// true iff a is complete whenever b starts. The launches complete when a launch starts are a
/// prefix of each stream; so a clock, one count for each stream, represents them.
class HappensBefore {
public:
  explicit HappensBefore(const std::vector<Launch> &launches);

  int size() const { return static_cast<int>(stream.size()); }
  int getNumStreams() const { return numStreams; }
  bool before(int a, int b) const { return clockOf(b)[stream[a]] > position[a]; }
  /// The number of launches of each stream that are complete when `launch` starts.
  llvm::ArrayRef<int> clockOf(int launch) const {
    return llvm::ArrayRef(clocks).slice(static_cast<size_t>(launch) * numStreams, numStreams);
  }
  /// Number of the stream of `launch`, dense from 0 in the order of first launches.
  int streamOf(int launch) const { return stream[launch]; }
  /// The number of launches of its stream that are issued before `launch`.
  int positionOf(int launch) const { return position[launch]; }
  /// The launch that precedes `launch` on its stream, or -1.
  int previousOnStream(int launch) const { return previous[launch]; }
  /// Launches that wait for one another in a cycle, each for the next one; empty if there is none.
  /// The order is meaningless for them and their successors.
  const std::vector<int> &cycle() const { return circle; }

private:
  int numStreams = 0;
  std::vector<int> stream, position, previous;
  std::vector<int> clocks; ///< row by row, one row for each launch
  std::vector<int> circle;
};

/// The lifetime of an object, given the launches that touch it.
class LiveRange {
public:
  LiveRange() = default;
  explicit LiveRange(const HappensBefore &order)
      : starts(order.getNumStreams(), order.size()), ends(order.getNumStreams(), 0) {}

  void touch(const HappensBefore &order, int launch) {
    llvm::ArrayRef<int> clock = order.clockOf(launch);
    for (size_t s = 0; s < clock.size(); ++s)
      starts[s] = std::min(starts[s], clock[s]);
    int &end = ends[order.streamOf(launch)];
    end = std::max(end, order.positionOf(launch) + 1);
    first = first < 0 ? launch : std::min(first, launch);
  }
  bool isTouched() const { return first >= 0; }
  /// The first launch in issue order; -1 if there is none.
  int firstLaunch() const { return first; }
  /// True iff every touch of this is complete whenever any touch of `other` starts.
  bool before(const LiveRange &other) const {
    for (size_t s = 0; s < ends.size(); ++s)
      if (ends[s] > other.starts[s])
        return false;
    return true;
  }
  /// The launches of each stream that must be complete for all touches to be: every touch is
  /// complete whenever a launch starts whose clock has as many.
  llvm::ArrayRef<int> getEnds() const { return ends; }
  /// True iff `launch` is complete whenever any touch of this starts.
  bool after(const HappensBefore &order, int launch) const {
    return starts[order.streamOf(launch)] > order.positionOf(launch);
  }

private:
  /// Launches of each stream that are complete whenever any touch starts.
  llvm::SmallVector<int, 4> starts;
  /// Launches of each stream that must be complete for all touches to be.
  llvm::SmallVector<int, 4> ends;
  int first = -1;
};

/// Nodes that depend on one another in a cycle, each on the next one, in the graph where node i
/// depends on `dependencies[i]`; empty where there is none. Otherwise `order` lists all nodes,
/// dependencies first.
std::vector<int> findCycle(const Dependencies &dependencies, std::vector<int> &order);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_HAPPENSBEFORE_H
