//===- UnitRuns.cpp -------------------------------------------------------===//

#include "passes/global/UnitRuns.h"

#include "dialect/fsdp/Structure.h"

using namespace mlir;
using namespace mlir::fsdp;

StringAttr mlir::fsdp::findUnit(Operation *op) {
  StringAttr unit;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    unit = getStructure(inner).unit;
    return unit ? WalkResult::interrupt() : WalkResult::advance();
  });
  return unit;
}

bool mlir::fsdp::isOfRun(Operation &op) {
  return !isa<ReadOp, ConstraintOp, arith::ConstantOp>(op) && findUnit(&op);
}

SmallVector<UnitRun> mlir::fsdp::collectUnitRuns(StepOp step) {
  SmallVector<UnitRun> runs;
  for (Operation &op : llvm::make_filter_range(step.getBody().front(), isOfRun)) {
    StringAttr unit = findUnit(&op);
    if (runs.empty() || runs.back().unit != unit)
      runs.push_back({unit});
    op.walk([&](nn::CostOpInterface inner) { runs.back().flops += inner.getCost().flops; });
  }
  return runs;
}
