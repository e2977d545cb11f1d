//===- ElementwiseModels.cpp - interfaces of arith and math on tensors ----===//
//
// One table: rule, cost and kernel of every elementwise op, and the derivatives of those
// that have one. Formulas reuse the result of the op where that saves work,
// and follow JAX where the derivative does not exist (ties of a maximum: half each;
// abs at 0: 0; pow at base 0 with respect to the exponent: 0).
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

namespace {

/// Builds the arithmetic of one derivative at one place.
struct Formula {
  OpBuilder &builder;
  Location loc;

  Value constant(Value like, double value) const {
    Type type = like.getType();
    FloatAttr element = builder.getFloatAttr(getElementTypeOrSelf(type), value);
    if (auto shaped = dyn_cast<ShapedType>(type))
      return arith::ConstantOp::create(builder, loc,
                                       DenseElementsAttr::get(shaped, element.getValue()));
    return arith::ConstantOp::create(builder, loc, element);
  }
  template <typename Op> Value make(Value operand) const {
    return Op::create(builder, loc, operand);
  }
  template <typename Op> Value make(Value lhs, Value rhs) const {
    return Op::create(builder, loc, lhs, rhs);
  }
  Value add(Value lhs, Value rhs) const { return make<arith::AddFOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) const { return make<arith::SubFOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) const { return make<arith::MulFOp>(lhs, rhs); }
  Value div(Value lhs, Value rhs) const { return make<arith::DivFOp>(lhs, rhs); }
  Value neg(Value value) const { return make<arith::NegFOp>(value); }
  Value scale(Value value, double factor) const { return mul(value, constant(value, factor)); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) const {
    return arith::CmpFOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
};

/// What a derivative gets: the cotangent `d` of the only result, never null.
struct Backward {
  const Formula &f;
  Value d;
  ArrayRef<bool> needed;
  SmallVectorImpl<Value> &cotangents;

  /// Appends what `build` builds if the operand `index` is needed, else null.
  template <typename Fn> void operand(unsigned index, Fn build) const {
    cotangents.push_back(needed[index] ? build() : Value());
  }
};

} // namespace

static bool isNonzeroSplat(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()) &&
         !splat.getSplatValue<APFloat>().isZero();
}

static void differentiate(arith::AddFOp op, const Backward &b) {
  b.operand(0, [&] { return b.d; });
  b.operand(1, [&] { return b.d; });
}

static void differentiate(arith::SubFOp op, const Backward &b) {
  b.operand(0, [&] { return b.d; });
  b.operand(1, [&] { return b.f.neg(b.d); });
}

static void differentiate(arith::MulFOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.mul(b.d, op.getRhs()); });
  b.operand(1, [&] { return b.f.mul(b.d, op.getLhs()); });
}

static void differentiate(arith::DivFOp op, const Backward &b) {
  Value quotient;
  if (b.needed[0] || b.needed[1])
    quotient = b.f.div(b.d, op.getRhs());
  b.operand(0, [&] { return quotient; });
  b.operand(1, [&] { return b.f.neg(b.f.mul(quotient, op.getResult())); });
}

static void differentiate(arith::NegFOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.neg(b.d); });
}

static void differentiate(math::FmaOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.mul(b.d, op.getB()); });
  b.operand(1, [&] { return b.f.mul(b.d, op.getA()); });
  b.operand(2, [&] { return b.d; });
}

/// The cotangent goes to the operand that wins by `wins`, half to each at a tie.
template <typename Op>
static void differentiateExtremum(Op op, const Backward &b, arith::CmpFPredicate wins) {
  if (!b.needed[0] && !b.needed[1]) {
    b.cotangents.append(2, Value());
    return;
  }
  Value lhs = op.getLhs(), rhs = op.getRhs();
  Value tie = b.f.compare(arith::CmpFPredicate::OEQ, lhs, rhs);
  Value otherwise = b.f.select(tie, b.f.scale(b.d, 0.5), b.f.constant(b.d, 0));
  b.operand(0, [&] { return b.f.select(b.f.compare(wins, lhs, rhs), b.d, otherwise); });
  b.operand(1, [&] { return b.f.select(b.f.compare(wins, rhs, lhs), b.d, otherwise); });
}

static void differentiate(arith::MaximumFOp op, const Backward &b) {
  differentiateExtremum(op, b, arith::CmpFPredicate::OGT);
}

static void differentiate(arith::MinimumFOp op, const Backward &b) {
  differentiateExtremum(op, b, arith::CmpFPredicate::OLT);
}

static void differentiate(arith::SelectOp op, const Backward &b) {
  b.cotangents.push_back(Value());
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(op.getType()));
  b.operand(1, [&] {
    return isFloat ? b.f.select(op.getCondition(), b.d, b.f.constant(b.d, 0)) : Value();
  });
  b.operand(2, [&] {
    return isFloat ? b.f.select(op.getCondition(), b.f.constant(b.d, 0), b.d) : Value();
  });
}

static void differentiate(arith::ExtFOp op, const Backward &b) {
  b.operand(0, [&]() -> Value {
    return arith::TruncFOp::create(b.f.builder, b.f.loc, op.getIn().getType(), b.d);
  });
}

static void differentiate(arith::TruncFOp op, const Backward &b) {
  b.operand(0, [&]() -> Value {
    return arith::ExtFOp::create(b.f.builder, b.f.loc, op.getIn().getType(), b.d);
  });
}

static void differentiate(math::ExpOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.mul(b.d, op.getResult()); });
}

static void differentiate(math::LogOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.div(b.d, op.getOperand()); });
}

static void differentiate(math::Log1pOp op, const Backward &b) {
  b.operand(0, [&] {
    Value x = op.getOperand();
    return b.f.div(b.d, b.f.add(x, b.f.constant(x, 1)));
  });
}

static void differentiate(math::SqrtOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.div(b.f.scale(b.d, 0.5), op.getResult()); });
}

static void differentiate(math::RsqrtOp op, const Backward &b) {
  b.operand(0, [&] {
    Value r = op.getResult();
    return b.f.mul(b.f.scale(b.d, -0.5), b.f.mul(r, b.f.mul(r, r)));
  });
}

static void differentiate(math::TanhOp op, const Backward &b) {
  b.operand(0, [&] {
    Value t = op.getResult();
    return b.f.mul(b.d, b.f.sub(b.f.constant(t, 1), b.f.mul(t, t)));
  });
}

static void differentiate(math::ErfOp op, const Backward &b) {
  b.operand(0, [&] {
    Value x = op.getOperand();
    Value density = b.f.make<math::ExpOp>(b.f.neg(b.f.mul(x, x)));
    return b.f.mul(b.d, b.f.scale(density, 2 / std::sqrt(M_PI)));
  });
}

static void differentiate(math::AbsFOp op, const Backward &b) {
  b.operand(0, [&] {
    Value x = op.getOperand(), zero = b.f.constant(x, 0);
    Value negative =
        b.f.select(b.f.compare(arith::CmpFPredicate::OLT, x, zero), b.f.neg(b.d), zero);
    return b.f.select(b.f.compare(arith::CmpFPredicate::OGT, x, zero), b.d, negative);
  });
}

static void differentiate(math::SinOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.mul(b.d, b.f.make<math::CosOp>(op.getOperand())); });
}

static void differentiate(math::CosOp op, const Backward &b) {
  b.operand(0, [&] { return b.f.neg(b.f.mul(b.d, b.f.make<math::SinOp>(op.getOperand()))); });
}

static void differentiate(math::PowFOp op, const Backward &b) {
  Value base = op.getLhs(), exponent = op.getRhs();
  b.operand(0, [&] {
    // exponent * base^(exponent - 1), and 0 for the exponent 0 even where the base is 0.
    Value power = b.f.make<math::PowFOp>(base, b.f.sub(exponent, b.f.constant(exponent, 1)));
    Value slope = b.f.mul(exponent, power);
    if (!isNonzeroSplat(exponent)) {
      Value zero = b.f.constant(exponent, 0);
      slope = b.f.select(b.f.compare(arith::CmpFPredicate::OEQ, exponent, zero), zero, slope);
    }
    return b.f.mul(b.d, slope);
  });
  b.operand(1, [&] {
    Value zero = b.f.constant(base, 0);
    Value slope = b.f.mul(op.getResult(), b.f.make<math::LogOp>(base));
    slope = b.f.select(b.f.compare(arith::CmpFPredicate::OEQ, base, zero), zero, slope);
    return b.f.mul(b.d, slope);
  });
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

namespace {

/// What an elementwise op says of itself: `flops` operations per element of the result; whether
/// they are cheap; what it does with sums; which float types it takes.
template <int64_t flops, bool cheap, Linearity linearity = Linearity::none,
          PrecisionClass precision = PrecisionClass::elementwise>
struct Elementwise {
  template <typename Op>
  struct RuleModel : ShardingRuleOpInterface::ExternalModel<RuleModel<Op>, Op> {
    ShardingRule getShardingRule(Operation *op) const { return ShardingRule::elementwise(op); }
    Linearity getLinearity(Operation *op) const { return linearity; }
  };
  template <typename Op> struct CostModel : CostOpInterface::ExternalModel<CostModel<Op>, Op> {
    Cost getCost(Operation *op) const {
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      return costOf(op, flops * (type && type.hasStaticShape() ? type.getNumElements() : 1));
    }
  };
  template <typename Op>
  struct KernelModel : KernelOpInterface::ExternalModel<KernelModel<Op>, Op> {
    PrecisionClass getPrecisionClass(Operation *op) const { return precision; }
    bool isElementwise(Operation *op) const { return true; }
    bool isCheap(Operation *op) const { return cheap; }
  };
  template <typename... Ops> static void attach(MLIRContext *context) {
    (Ops::template attachInterface<RuleModel<Ops>, CostModel<Ops>, KernelModel<Ops>>(*context),
     ...);
  }
};

/// Only a splat is the same on every rank whatever its shape.
struct ConstantModel : ShardingRuleOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::elementwise(op);
    if (!isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue()))
      for (Factor &factor : rule.factors)
        factor.kind = FactorKind::whole;
    return rule;
  }
  void setLocalSizes(Operation *op, const ShardingRule &rule, ArrayRef<int64_t> parts) const {
    auto constant = cast<arith::ConstantOp>(op);
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      constant.setValueAttr(splat.resizeSplat(cast<ShapedType>(constant.getType())));
  }
};

struct ConstantCost : CostOpInterface::ExternalModel<ConstantCost, arith::ConstantOp> {
  Cost getCost(Operation *op) const { return costOf(op, 0); }
};

template <typename Op>
struct DerivativeModel : DifferentiableOpInterface::ExternalModel<DerivativeModel<Op>, Op> {
  LogicalResult buildCotangents(Operation *op, OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                ArrayRef<bool> needed,
                                SmallVectorImpl<Value> &operandCotangents) const {
    if (!resultCotangents[0]) {
      operandCotangents.append(op->getNumOperands(), Value());
      return success();
    }
    Formula formula{builder, op->getLoc()};
    differentiate(cast<Op>(op), {formula, resultCotangents[0], needed, operandCotangents});
    return success();
  }
};

template <typename... Ops> void attachDerivatives(MLIRContext *context) {
  (Ops::template attachInterface<DerivativeModel<Ops>>(*context), ...);
}

} // namespace

void mlir::nn::registerElementwiseModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    using L = Linearity;
    using P = PrecisionClass;
    Elementwise<1, true, L::additive>::attach<arith::AddFOp, arith::SubFOp, arith::NegFOp,
                                              arith::AddIOp, arith::SubIOp>(context);
    Elementwise<1, true, L::product>::attach<arith::MulFOp, arith::MulIOp>(context);
    Elementwise<1, false, L::quotient>::attach<arith::DivFOp>(context);
    Elementwise<1, true, L::homogeneous>::attach<arith::MaximumFOp, arith::MinimumFOp>(context);
    Elementwise<1, true>::attach<arith::CmpFOp, arith::CmpIOp, arith::AndIOp, arith::OrIOp,
                                 arith::XOrIOp>(context);
    // Those that only select or convert count no operations.
    Elementwise<0, true, L::choice>::attach<arith::SelectOp>(context);
    Elementwise<0, true, L::linearMap>::attach<arith::SIToFPOp, arith::UIToFPOp, arith::ExtSIOp,
                                               arith::TruncIOp>(context);
    // A cast of the model's is to the type that it asks for; it may start from a narrower one.
    Elementwise<0, true, L::rounding, P::any>::attach<arith::ExtFOp>(context);
    Elementwise<0, true, L::rounding, P::fixed>::attach<arith::TruncFOp>(context);
    arith::ConstantOp::attachInterface<ConstantModel, ConstantCost>(*context);
    attachDerivatives<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
                      arith::MaximumFOp, arith::MinimumFOp, arith::SelectOp, arith::ExtFOp,
                      arith::TruncFOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    Elementwise<1, false>::attach<math::ExpOp, math::LogOp, math::Log1pOp, math::SqrtOp,
                                  math::RsqrtOp, math::TanhOp, math::ErfOp, math::AbsFOp,
                                  math::SinOp, math::CosOp, math::PowFOp, math::FmaOp>(context);
    attachDerivatives<math::ExpOp, math::LogOp, math::Log1pOp, math::SqrtOp, math::RsqrtOp,
                      math::TanhOp, math::ErfOp, math::AbsFOp, math::SinOp, math::CosOp,
                      math::PowFOp, math::FmaOp>(context);
  });
}

bool mlir::nn::isElementwise(Operation *op) {
  if (isa<arith::ConstantOp>(op) || op->getNumResults() != 1 ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         isa<ShardingRuleOpInterface>(op);
}
