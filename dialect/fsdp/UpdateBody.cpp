//===- UpdateBody.cpp - numbers of an update's expression -----------------===//

#include "dialect/fsdp/UpdateRule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::fsdp;

template <typename Op, typename... Operands> static Number append(Number like, Operands... values) {
  return {like.builder, Op::create(*like.builder, like.builder->getUnknownLoc(), values...)};
}

static Type scalarOf(Type element) { return RankedTensorType::get({}, element); }

static Number constantLike(Number like, double value) {
  auto type = cast<RankedTensorType>(like.value.getType());
  auto number = DenseElementsAttr::get(
      type, static_cast<Attribute>(FloatAttr::get(type.getElementType(), value)));
  return append<arith::ConstantOp>(like, number);
}

Number Number::named(StringRef name) const {
  value.getDefiningOp()->setLoc(NameLoc::get(builder->getStringAttr(name)));
  return *this;
}

Number mlir::fsdp::operator+(Number a, Number b) {
  return append<arith::AddFOp>(a, a.value, b.value);
}
Number mlir::fsdp::operator-(Number a, Number b) {
  return append<arith::SubFOp>(a, a.value, b.value);
}
Number mlir::fsdp::operator*(Number a, Number b) {
  return append<arith::MulFOp>(a, a.value, b.value);
}
Number mlir::fsdp::operator/(Number a, Number b) {
  return append<arith::DivFOp>(a, a.value, b.value);
}
Number mlir::fsdp::operator-(double a, Number b) { return constantLike(b, a) - b; }
Number mlir::fsdp::operator/(double a, Number b) { return constantLike(b, a) / b; }

Number mlir::fsdp::pow(Number base, Number exponent) {
  return append<math::PowFOp>(base, base.value, exponent.value);
}
Number mlir::fsdp::sqrt(Number x) { return append<math::SqrtOp>(x, x.value); }

Number mlir::fsdp::select(Number condition, Number yes, Number no) {
  return append<arith::SelectOp>(yes, condition.value, yes.value, no.value);
}
Number mlir::fsdp::select(Number condition, double yes, Number no) {
  return select(condition, constantLike(no, yes), no);
}
Number mlir::fsdp::select(Number condition, Number yes, double no) {
  return select(condition, yes, constantLike(yes, no));
}

static Number compare(arith::CmpFPredicate predicate, Number a, double b) {
  return append<arith::CmpFOp>(a, predicate, a.value, constantLike(a, b).value);
}

Number mlir::fsdp::isZero(Number x) { return compare(arith::CmpFPredicate::OEQ, x, 0); }

Number mlir::fsdp::sign(Number x) {
  Number negative = select(compare(arith::CmpFPredicate::OLT, x, 0), -1, constantLike(x, 0));
  return select(compare(arith::CmpFPredicate::OGT, x, 0), 1, negative);
}

UpdateBody::UpdateBody(OptimizerAttr optimizer, Type element)
    : rule(optimizer.getUpdateRule()), element(element), body(std::make_unique<Block>()),
      builder(optimizer.getContext()) {
  builder.setInsertionPointToStart(body.get());
  auto argument = [&](Type type) {
    return Number{&builder, body->addArgument(scalarOf(type), builder.getUnknownLoc())};
  };
  parameter = argument(element);
  Number unscaled = argument(element);
  lr = argument(element);
  Number scale = argument(element);
  count = argument(builder.getF64Type());
  decays = argument(builder.getI1Type());
  for (StringRef state : optimizer.getStateNames()) {
    (void)state;
    states.push_back(argument(element));
  }
  for (const UpdateRule::Constant &each : rule.constants) {
    (void)each;
    constants.push_back(argument(element));
  }
  newStates = states;
  newParameter = parameter;
  gradient = (unscaled * scale).named("scaled");
  decay = rule.reads("weight_decay") ? select(decays, constant("weight_decay"), 0).named("decay")
                                     : literal(0);
}

Number UpdateBody::literal(double value) { return constantLike(parameter, value); }

Number UpdateBody::constant(StringRef name) {
  for (auto [each, value] : llvm::zip_equal(rule.constants, constants))
    if (each.name == name)
      return value;
  llvm_unreachable("the rule's row lacks the constant");
}

Number UpdateBody::toDouble(Number x) {
  Type type = scalarOf(builder.getF64Type());
  return x.value.getType() == type ? x : append<arith::ExtFOp>(x, type, x.value);
}

Number UpdateBody::toElement(Number x) {
  Type type = scalarOf(element);
  return x.value.getType() == type ? x : append<arith::TruncFOp>(x, type, x.value);
}

Number UpdateBody::shrink() {
  Number factor = toElement(1 - toDouble(lr) * toDouble(constant("weight_decay")));
  return select(decays, factor, 1).named("shrink");
}
