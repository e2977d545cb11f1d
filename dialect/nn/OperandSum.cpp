//===- OperandSum.cpp -----------------------------------------------------===//

#include "dialect/nn/OperandSum.h"

#include "dialect/nn/RowProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nn;

/// `value`, or the operand of the op that widens it.
static Value behindExtension(Value value) {
  auto extension = value.getDefiningOp<arith::ExtFOp>();
  return extension ? extension.getIn() : value;
}

bool mlir::nn::addsUpRows(ReduceOp sum, Value operand, EinsumOp product, bool ofRight) {
  if (sum.getKind() != Reduction::sum || !getElementTypeOrSelf(sum.getType()).isF32() ||
      !getElementTypeOrSelf(product.getType()).isF32() || !getRowDims(product) ||
      behindExtension(sum.getInput()) != operand)
    return false;
  const Notation ofSum = sum.getPattern(), ofProduct = product.getPattern();
  const NotationTensor &input = ofSum.operands.front(), &side = ofProduct.operands[ofRight];
  const size_t kept = ofSum.result.size();
  if (kept == 0 || kept >= input.size() || side.size() != input.size() ||
      ArrayRef<NotationDim>(input).take_back(kept) != ArrayRef<NotationDim>(ofSum.result))
    return false;
  for (auto [index, dim] : llvm::enumerate(side))
    if (llvm::is_contained(ofProduct.result, dim) != (index >= input.size() - kept))
      return false;
  return true;
}

std::optional<OperandSum> mlir::nn::getOperandSum(Operation *op) {
  auto fused = dyn_cast_or_null<FusedOp>(op);
  if (!fused || fused->getNumResults() != 2)
    return std::nullopt;
  Operation *yield = fused.getBody().front().getTerminator();
  auto product = yield->getOperand(0).getDefiningOp<EinsumOp>();
  auto sum = yield->getOperand(1).getDefiningOp<ReduceOp>();
  if (!product || !sum || !product->hasOneUse())
    return std::nullopt;
  for (bool ofRight : {false, true})
    if (addsUpRows(sum, product->getOperand(ofRight), product, ofRight))
      return OperandSum{product, sum, ofRight};
  return std::nullopt;
}
