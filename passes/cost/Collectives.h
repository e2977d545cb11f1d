//===- Collectives.h - times of collectives ---------------------*- C++ -*-===//
// The alpha-beta model: a message of n bytes takes alpha + n / B. docs/cost-model.md derives the
// formulas.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COST_COLLECTIVES_H
#define PASSES_COST_COLLECTIVES_H

#include "passes/cost/Machine.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::fsdp::cost {

/// The positions of a group's ranks in the levels of a machine.
struct GroupShape {
  /// For each level of the links, the fewest ranks of the group in a block that contains some: all
  /// bytes that the block takes from other blocks pass the links of these ranks. The last element
  /// is the number of ranks.
  std::vector<int64_t> perLevel;

  int64_t ranks() const { return perLevel.empty() ? 1 : perLevel.back(); }
};

/// The shape of the group of the ranks `group`, and of the slowest of several groups: per level,
/// the block with the fewest ranks counts.
GroupShape shapeOf(llvm::ArrayRef<int64_t> group, const Machine &machine);
GroupShape slowerOf(const GroupShape &one, const GroupShape &other);

/// The time of a collective, and its components.
struct CollectiveTime {
  double seconds = 0;
  std::string algorithm; ///< "" for a collective among one rank
  /// Bytes that a rank sends over the slowest link, at its bandwidth: (P - 1) / P of the value in a
  /// gather, twice that in an all-reduce (the "bus bandwidth" of nccl-tests).
  double busBytes = 0;
  double linkBandwidth = 0; ///< bytes/s of `busBytes` if no message had a latency
};

/// A collective of `kind` (the mnemonic of the op) whose whole value has `bytes`, on a group, by
/// one algorithm; nothing if the algorithm does not implement the collective.
std::optional<CollectiveTime> timeBy(const std::string &algorithm, const std::string &kind,
                                     double bytes, const GroupShape &group, const Machine &machine);
/// By the fastest algorithm of the machine.
CollectiveTime timeOf(const std::string &kind, double bytes, const GroupShape &group,
                      const Machine &machine);

} // namespace mlir::fsdp::cost

#endif // PASSES_COST_COLLECTIVES_H
