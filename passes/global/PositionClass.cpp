//===- PositionClass.cpp - the positions of a model's values --------------===//

#include "passes/global/PositionClass.h"
#include "dialect/fsdp/TokenSource.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

void PositionClass::addValues(Operation *op) {
  for (Value result : op->getResults()) {
    numbers[result] = size;
    size += rankOf(result);
  }
}

void PositionClass::join(Operation *op) {
  auto joinAll = [&](Value a, Value b) {
    for (int64_t dim = 0; dim < rankOf(a); ++dim)
      classes.join(numbers.lookup(a) + dim, numbers.lookup(b) + dim);
  };
  if (auto checkpoint = dyn_cast<CheckpointOp>(op))
    for (auto [result, value] : llvm::zip_equal(
             checkpoint.getResults(), checkpoint.getBody().front().getTerminator()->getOperands()))
      joinAll(result, value);
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!ruled)
    return;
  nn::ShardingRule rule = ruled.getShardingRule();
  SmallVector<int64_t> dimOfFactor(rule.factors.size(), -1);
  rule.forEachTensor(op, [&](Value value, const nn::TensorFactors &tensor) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (factors.size() != 1) // merged dimensions are not positions
        continue;
      int64_t &known = dimOfFactor[factors.front()];
      const int64_t own = numbers.lookup(value) + static_cast<int64_t>(dim);
      if (known < 0)
        known = own;
      else
        classes.join(known, own);
    }
  });
}

PositionClass::PositionClass(StepOp step) {
  step.walk([&](Operation *op) { addValues(op); });
  classes.grow(size);
  step.walk([&](Operation *op) { join(op); });
  classes.compress();
  step.walk([&](InputOp input) {
    if (input->hasAttr(tokensAttrName) || input->hasAttr(targetsAttrName))
      positions.insert(classes[numbers.lookup(input) + 1]);
  });
  step.walk([&](ConstraintOp constraint) {
    if (!constraint.getSequenceParallel())
      return;
    for (int64_t dim = 0; dim < rankOf(constraint); ++dim)
      if (!constraint.getSharding().getAxes(dim).empty())
        positions.insert(classes[numbers.lookup(constraint) + dim]);
  });
}

int64_t PositionClass::find(Value value) const {
  for (int64_t dim = 0; dim < rankOf(value); ++dim)
    if (contains(value, dim))
      return dim;
  return -1;
}
