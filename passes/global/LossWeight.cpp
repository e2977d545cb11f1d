//===- LossWeight.cpp - what sums of losses and metrics are divided by ----===//

#include "passes/global/LossWeight.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

Value mlir::fsdp::buildDivisor(OpBuilder &builder, Location loc, Value weight) {
  if (matchPattern(weight, m_Constant()))
    return weight;
  auto type = cast<RankedTensorType>(weight.getType());
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value)));
  };
  Value isZero = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, weight, number(0));
  return arith::SelectOp::create(builder, loc, isZero, number(1), weight);
}
