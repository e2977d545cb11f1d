//===- Cost.cpp - flops and bytes of one op -------------------------------===//

#include "dialect/nn/Cost.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::nn;

int64_t mlir::nn::bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return 0;
  return tensor.getNumElements() *
         llvm::divideCeil(tensor.getElementType().getIntOrFloatBitWidth(), 8);
}

Cost mlir::nn::costOf(Operation *op, int64_t flops) {
  Cost cost;
  cost.flops = flops;
  for (Type type : op->getOperandTypes())
    cost.bytesRead += bytesOf(type);
  for (Type type : op->getResultTypes())
    cost.bytesWritten += bytesOf(type);
  return cost;
}
