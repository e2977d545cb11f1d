//===- HappensBefore.h - which launch is complete when another starts -*- C++ -*-===//

#ifndef PASSES_SCHEDULE_HAPPENSBEFORE_H
#define PASSES_SCHEDULE_HAPPENSBEFORE_H

#include "llvm/ADT/BitVector.h"
#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// The partial order that streams and waits put on the launches of a segment: `before(a, b)` is
/// true iff a is complete whenever b starts.
class HappensBefore {
public:
  explicit HappensBefore(const std::vector<Launch> &launches);

  int size() const { return static_cast<int>(predecessors.size()); }
  bool before(int a, int b) const { return predecessors[b].test(a); }
  /// Everything that is complete when `launch` starts.
  const llvm::BitVector &predecessorsOf(int launch) const { return predecessors[launch]; }
  /// The launch that precedes `launch` on its stream, or -1.
  int previousOnStream(int launch) const { return previous[launch]; }
  /// Launches that wait for one another in a circle, each for the next one; empty where there is
  /// none. The order is meaningless for them and what follows them.
  const std::vector<int> &cycle() const { return circle; }

private:
  std::vector<llvm::BitVector> predecessors;
  std::vector<int> previous;
  std::vector<int> circle;
};

/// Nodes that depend on one another in a circle, each on the next one, in the graph where node i
/// depends on `dependencies[i]`; empty where there is none. Otherwise `order` lists all nodes,
/// dependencies first.
std::vector<int> findCycle(const std::vector<std::vector<int>> &dependencies,
                           std::vector<int> &order);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_HAPPENSBEFORE_H
