//===- ParameterValues.cpp ------------------------------------------------===//

#include "passes/global/ParameterValues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/global/Recompute.h"

using namespace mlir;
using namespace mlir::fsdp;

DenseSet<Value> mlir::fsdp::collectParameterValues(Block &body) {
  DenseSet<Value> values;
  for (Operation &op : body) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      values.insert(read.getResult());
      continue;
    }
    bool onlyParameters = isCheap(&op) || isa<PgatherOp>(op), anyParameter = false;
    for (Value operand : op.getOperands()) {
      const bool parameter = values.contains(operand);
      anyParameter |= parameter;
      onlyParameters &= parameter || operand.getDefiningOp<arith::ConstantOp>() != nullptr;
    }
    if (onlyParameters && anyParameter)
      values.insert_range(op.getResults());
  }
  return values;
}

bool mlir::fsdp::yieldsOnly(Operation &op, const DenseSet<Value> &values) {
  return op.getNumResults() > 0 &&
         llvm::all_of(op.getResults(), [&](Value result) { return values.contains(result); });
}
