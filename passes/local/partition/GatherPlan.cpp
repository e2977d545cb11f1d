//===- GatherPlan.cpp - which reads share a gather ------------------------===//

#include "passes/local/partition/GatherPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

GatherPlan::GatherPlan(StepOp step, const StorageLayout &layout) {
  unsigned group = 0;
  StringRef unit;
  for (Operation &op : step.getBody().front())
    for (Value operand : op.getOperands()) {
      auto read = operand.getDefiningOp<ReadOp>();
      if (!read || groups.contains(read))
        continue;
      Storage *storage = layout.lookup(read.getParamAttr().getAttr()).first;
      // Parameters that compute reads in their storage are not gathered and do not end a run.
      if (!storage->isMade()) {
        groups[read] = 0;
        continue;
      }
      if (group == 0 || storage->unit != unit) {
        ++group;
        unit = storage->unit;
      }
      groups[read] = storage->placement.getReshard() == Reshard::never ? 0 : group;
    }
}
