//===- SequenceOrder.h - dependence on the order of positions ---*- C++ -*-===//
//
// In zigzag order (dialect/nn/Zigzag.h) a step computes with its positions permuted: inputs,
// parameters and constants are permuted where they enter. Ops that compute position by position, or
// sum over positions, do not depend on the order. The ops that do are found here.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_GLOBAL_SEQUENCEORDER_H
#define PASSES_GLOBAL_SEQUENCEORDER_H

#include "passes/global/PositionClass.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>

namespace mlir::fsdp {

/// A table of positions that `repeat` adds to each sample: its rows from `start` on.
struct PositionTable {
  Value table;
  int64_t start;
};
/// Nothing where `repeat` is no such table, or too long for positions to be counted in f32.
std::optional<PositionTable> findPositionTable(nn::RepeatOp repeat, const PositionClass &positions);

/// Whether a rotation over positions can take their numbers as an operand.
bool takesNumbers(nn::RopeOp rope, const PositionClass &positions);

/// How many scores each of `ranks` ranks computes of causal attention to `positions` positions, in
/// zigzag order or with consecutive positions, those of padding among them. `window`: 0 without.
/// `endsWithKeys`: keys that are padding are left out.
SmallVector<double> countScores(int64_t positions, int64_t window, int64_t ranks, bool zigzag,
                                bool endsWithKeys);

/// The ops of a step before differentiation that need positions in their order.
class SequenceOrder {
public:
  SequenceOrder(StepOp step, const PositionClass &positions) : positions(positions), step(step) {}

  /// The ops on the way from inputs alone to operands whose positions an op needs whole: with
  /// `inOrder` also to operands whose order it depends on, and those ops. Each rank computes them
  /// from whole inputs.
  void findWhole(bool inOrder);
  /// The users of inputs that take them whole.
  bool takesWhole(Operation *op) const { return users.contains(op); }
  bool isWhole(Operation *op) const { return whole.contains(op); }
  const DenseSet<Operation *> &getWhole() const { return whole; }

  /// An op that depends on the order and is neither attention, a rotation that takes numbers, nor
  /// computed from inputs alone, with a description of the dependence; nothing where there is none.
  std::optional<std::pair<Operation *, std::string>> findFault() const;

private:
  std::string getDependence(Operation *op) const;
  bool collectOps(Value value, Operation *user, DenseSet<Operation *> &ops,
                  DenseSet<Operation *> &found) const;

  const PositionClass &positions;
  StepOp step;
  DenseSet<Operation *> whole, users;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_SEQUENCEORDER_H
