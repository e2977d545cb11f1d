//===- StepShardings.h - the sharding of every value of a step --*- C++ -*-===//

#ifndef PASSES_SHARDING_STEPSHARDINGS_H
#define PASSES_SHARDING_STEPSHARDINGS_H

#include "passes/sharding/OpSplit.h"
#include "passes/sharding/ShardingRules.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Allocator.h"
#include <memory>
#include <optional>

namespace mlir::fsdp {

/// The sharding of every tensor value of one global step.
/// `unreduced` of a value means that its op leaves partial sums (or maxima); users that need the
/// value itself get it reduced. Sums of partial sums over the same axes stay
/// partial, so that a gradient with several contributions is reduced once.
class StepShardings {
public:
  /// Splits each value of `step` over the axes that `axesOf` gives for it, and inserts an
  /// `fsdp.reshard` where an op cannot use an operand as it is split.
  static StepShardings take(StepOp step, llvm::function_ref<DimAxes(Value)> axesOf);

  /// Reads the shardings that `fsdp-propagate` wrote; emits an error and fails where one is missing
  /// or one that its op cannot produce.
  static FailureOr<StepShardings> read(StepOp step);

  /// Writes the attribute `fsdp.shardings` of every op with tensor results.
  void write() const;

  /// Emits an error and fails unless each value's sharding is one that its op can produce from
  /// its operands, with the right `unreduced`.
  LogicalResult verify() const;

  ShardingAttr lookup(Value value) const { return shardings.lookup(value); }

  /// The sharding rule of `op`; null for an op without one.
  const nn::ShardingRule *getRule(Operation *op) const { return rules.get(op); }
  /// The split of `op`, an op with a sharding rule.
  const OpSplit &split(Operation *op) const { return take(op).split; }

  /// The axes of ranks over which the step loads its samples, if all inputs that are split over
  /// microbatches have the same; else nothing.
  std::optional<AxisList> getLoadAxes() const;
  /// True where microbatches are of whole samples wherever values are split over them: a rank's
  /// part in one of them is the same samples for all values with the same axes, in one order. Where
  /// rows are split that merge samples with something else, a microbatch may have parts of samples.
  bool hasWholeSamples() const;

  /// For each operand of `op` the axes over which it is taken as a partial sum, which the result
  /// then is: the op only adds, negates or rearranges, and all operands are partial over the same
  /// axes; or it multiplies one partial sum by a replicated value, and the product is summed over
  /// ranks in any case.
  SmallVector<AxisList> getCarried(Operation *op) const;

private:
  /// How an op is split, and whether it uses each operand as the operand is split.
  struct Taken {
    OpSplit split;
    bool asIs;
  };

  explicit StepShardings(StepOp step) : step(step) {}
  /// The split of `op`, an op with a sharding rule. It follows from the rule and the shardings of
  /// operands and results, so equal layers share it.
  const Taken &take(Operation *op) const;
  DimAxes axesOf(Value value) const;
  SmallVector<DimAxes> axesOf(ValueRange values) const;
  /// Sets the sharding of each result of `op`, whose axes are `axes`, and its partial axes.
  void assign(Operation *op, ArrayRef<DimAxes> axes);
  /// Makes the result of `op` a partial sum if no operand has to move for it, whereas the intended
  /// sharding would move one: users complete the sum.
  void keepSums(Operation *op);
  /// True if `op` uses each operand as it is split.
  bool takesAsIs(Operation *op) const { return take(op).asIs; }
  /// The axes over which `result` is a partial sum if its op, whose split is `taken`, uses each
  /// operand as it is split.
  AxisList findSummed(OpResult result, const OpSplit &taken) const;
  /// Reshards the operands of `op` to the shardings that it needs.
  void insertReshards(Operation *op);
  bool addsPartialSums(Operation *op) const;
  bool multipliesPartialSums(Operation *op, unsigned index, ArrayRef<StringAttr> partial) const;
  /// `symbols`: of the module.
  LogicalResult verifyResults(Operation *op, const SymbolTable &symbols) const;
  /// The dimensions of `result`, of an op with a sharding rule, whose axes the op can produce.
  SmallVector<bool> findAdmitted(OpResult result) const;
  /// The axes over which `value` is partial, in the order of the names.
  AxisList unreducedOf(OpResult value) const;

  // Accessors of ops are not const.
  mutable StepOp step;
  DenseMap<Value, ShardingAttr> shardings;
  mutable ShardingRules rules;
  /// By the rule and the shardings, whose addresses `keys` holds.
  mutable DenseMap<ArrayRef<const void *>, std::unique_ptr<Taken>> splits;
  mutable llvm::BumpPtrAllocator keys;
  /// OpSplit::findAdmitted of a result, by the rule, the number of the result and its sharding.
  mutable DenseMap<std::pair<std::pair<const void *, unsigned>, Attribute>, SmallVector<bool>>
      admitted;
  /// While operands are resharded: the axes over which values are partial sums, as far as their ops
  /// determine them.
  DenseMap<Value, AxisList> partial;
  /// A value in another sharding.
  DenseMap<std::pair<Value, Attribute>, Value> resharded;
};

/// True where `op` combines partial results of its ranks by a maximum instead of a sum.
bool reducesByMaximum(Operation *op);
/// The identity of the sum or maximum that `op` computes, in the element type of `value`.
double getReductionIdentity(Operation *op, Value value);

/// The name of `value` for a diagnostic: the name in its location, else its op's.
std::string nameOf(Value value);

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_STEPSHARDINGS_H
