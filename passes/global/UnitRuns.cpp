//===- UnitRuns.cpp -------------------------------------------------------===//

#include "passes/global/UnitRuns.h"

#include "dialect/fsdp/Structure.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The unit of `op`, or of the first op in its regions that has one; null without.
static StringAttr findUnit(Operation *op) {
  StringAttr unit;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    unit = getStructure(inner).unit;
    return unit ? WalkResult::interrupt() : WalkResult::advance();
  });
  return unit;
}

SmallVector<UnitRun> mlir::fsdp::collectUnitRuns(StepOp step) {
  SmallVector<UnitRun> runs;
  for (Operation &op : step.getBody().front()) {
    StringAttr unit = findUnit(&op);
    if (!unit || isa<ReadOp, ConstraintOp, arith::ConstantOp>(op))
      continue;
    if (runs.empty() || runs.back().unit != unit)
      runs.push_back({unit});
    runs.back().ops.push_back(&op);
    op.walk([&](nn::CostOpInterface inner) { runs.back().flops += inner.getCost().flops; });
  }
  return runs;
}
