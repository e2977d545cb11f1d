//===- ShardingPropagation.cpp - shardings to a fixed point ---------------===//
//
// The state of a value is, for each dimension, the axes that split it or none yet. It only ever
// goes from none to some, so that the fixed point exists and is reached in as many sweeps as the
// longest chain of values is long, in practice three. A sweep forward carries the split of
// the inputs into everything computed from them; a sweep backward carries it into what stands
// beside: broadcasts of parameters, constants.
//
// Splits that contradict each other are not resolved here: the first stands, and partitioning
// reshards an operand where an op needs it otherwise.
//
//===----------------------------------------------------------------------===//

#include "passes/global/StepShardings.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class Propagation {
public:
  Propagation(StepOp step, ArrayRef<StringAttr> batchAxes)
      : step(step), mesh(getMesh(step)), batchAxes(batchAxes) {}

  LogicalResult run();
  ArrayRef<AxisList> lookup(Value value) const { return values.find(value)->second.axes; }

private:
  struct State {
    DimAxes axes;
    /// Dimensions that stay as they are.
    SmallVector<bool, 4> pinned;
  };

  LogicalResult seed(Operation *op);
  /// Carries splits across one op; returns true if a state changed.
  bool visit(Operation *op);
  bool assign(Value value, const DimAxes &axes);
  SmallVector<DimAxes> axesOf(ValueRange range) const;
  /// The rule of `op`, asked for once.
  const nn::ShardingRule &ruleOf(nn::ShardingRuleOpInterface op) {
    std::unique_ptr<nn::ShardingRule> &rule = rules[op];
    if (!rule)
      rule = std::make_unique<nn::ShardingRule>(op.getShardingRule());
    return *rule;
  }

  StepOp step;
  MeshAttr mesh;
  ArrayRef<StringAttr> batchAxes;
  DenseMap<Value, State> values;
  DenseMap<Operation *, std::unique_ptr<nn::ShardingRule>> rules;
};

} // namespace

LogicalResult Propagation::seed(Operation *op) {
  if (isa<CheckpointOp>(op))
    return op->emitOpError() << "is still there; run --fsdp-differentiate before --fsdp-propagate";
  if (op->getNumRegions() != 0)
    return op->emitOpError() << "has a region, which propagation does not enter; run "
                                "--fsdp-propagate before --fsdp-fuse";
  for (Value value : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape())
      return op->emitOpError() << "has result type " << value.getType()
                               << ", expected a ranked tensor with static shape";
    State &state = values[value];
    state.axes.resize(type.getRank());
    state.pinned.assign(type.getRank(), false);
    if (auto input = dyn_cast<InputOp>(op)) {
      // Samples are split where the data are loaded; nothing else of an input is.
      state.pinned.assign(type.getRank(), true);
      state.axes[input.getSampleDim()] = AxisList(batchAxes);
    } else if (auto constraint = dyn_cast<ConstraintOp>(op)) {
      ShardingAttr sharding = constraint.getSharding();
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        state.axes[dim] = AxisList(sharding.getAxes(dim));
        state.pinned[dim] = !sharding.getDimOpen()[dim];
      }
    } else if (isa<ReadOp>(op)) {
      // Parameters are whole in compute; how they are stored does not matter here.
      state.pinned.assign(type.getRank(), true);
    } else if (!isa<nn::ShardingRuleOpInterface>(op) && type.getRank() != 0) {
      return op->emitOpError() << "has no sharding rule, so its tensors cannot be split; write it "
                                  "with ops that have one";
    }
  }
  return success();
}

SmallVector<DimAxes> Propagation::axesOf(ValueRange range) const {
  return llvm::map_to_vector(range, [&](Value value) { return values.find(value)->second.axes; });
}

bool Propagation::assign(Value value, const DimAxes &axes) {
  State &state = values.find(value)->second;
  bool changed = false;
  for (size_t dim = 0; dim < axes.size(); ++dim) {
    const AxisList &wanted = axes[dim];
    if (wanted.empty() || state.pinned[dim] || !state.axes[dim].empty())
      continue;
    bool taken = llvm::any_of(state.axes, [&](const AxisList &others) {
      return llvm::any_of(others,
                          [&](StringAttr other) { return llvm::is_contained(wanted, other); });
    });
    // What the op that makes the value cannot split stays whole.
    bool producible = true;
    Operation *producer = value.getDefiningOp();
    if (auto interface = dyn_cast<nn::ShardingRuleOpInterface>(producer);
        interface && !isa<ConstraintOp>(producer)) {
      const nn::ShardingRule &rule = ruleOf(interface);
      unsigned result = cast<OpResult>(value).getResultNumber();
      producible = OpSplit::admits(rule, mesh, rule.results[result][dim], wanted);
    }
    if (taken || !producible)
      continue;
    state.axes[dim] = wanted;
    changed = true;
  }
  return changed;
}

bool Propagation::visit(Operation *op) {
  auto interface = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!interface)
    return false;
  const nn::ShardingRule &rule = ruleOf(interface);
  OpSplit split =
      OpSplit::suggest(rule, mesh, axesOf(op->getOperands()), axesOf(ValueRange(op->getResults())));
  bool changed = false;
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    changed |= assign(value, split.project(tensor));
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    changed |= assign(value, split.project(tensor));
  return changed;
}

LogicalResult Propagation::run() {
  Block &body = step.getBody().front();
  for (Operation &op : body)
    if (failed(seed(&op)))
      return failure();
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation &op : body)
      changed |= visit(&op);
    for (Operation &op : llvm::reverse(body))
      changed |= visit(&op);
  }
  return success();
}

FailureOr<StepShardings> StepShardings::propagate(StepOp step, ArrayRef<StringAttr> batchAxes) {
  Propagation propagation(step, batchAxes);
  if (failed(propagation.run()))
    return failure();
  StepShardings result(step);
  auto mesh = FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr());
  auto toSharding = [&](Value value, ArrayRef<StringAttr> unreduced) {
    return ShardingAttr::getCanonical(mesh, propagation.lookup(value), unreduced);
  };
  for (Operation &op : step.getBody().front()) {
    for (Value value : op.getResults())
      result.shardings[value] = toSharding(value, {});
    SmallVector<AxisList> unreduced = llvm::map_to_vector(
        op.getResults(), [&](OpResult value) { return result.unreducedOf(value); });
    for (auto [value, axes] : llvm::zip_equal(op.getResults(), unreduced))
      result.shardings[value] = toSharding(value, axes);
  }
  return result;
}
