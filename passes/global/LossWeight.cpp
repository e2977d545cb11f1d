//===- LossWeight.cpp - divisors of sums of losses and metrics ------------===//

#include "passes/global/LossWeight.h"

#include "dialect/nn/Precision.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

Value mlir::fsdp::buildDivisor(OpBuilder &builder, Location loc, Value weight) {
  if (matchPattern(weight, m_Constant()))
    return weight;
  auto number = [&](double value) {
    return nn::createSplat(builder, loc, weight.getType(), value);
  };
  Value isZero = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, weight, number(0));
  return arith::SelectOp::create(builder, loc, isZero, number(1), weight);
}
