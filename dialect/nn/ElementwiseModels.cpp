//===- ElementwiseModels.cpp - the table of elementwise ops ---------------===//
//
// One row for each elementwise op of arith and math: its cost, how it acts on sums, its C++
// expression for both targets, and its derivative. Tests compare these rows with the interpreter's
// independent reference in double (interpreter/Elementwise.cpp).
//
// Derivatives reuse the result of the op where that saves work, and follow JAX where the derivative
// does not exist (ties of a maximum: half each; abs at 0: 0; pow at base 0 with respect to the
// exponent: 0).
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/Elementwise.h"
#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {

/// Builds the derivative of `op`, whose only result has the cotangent `d`, which is not null.
struct Backward {
  OpBuilder &builder;
  Operation *op;
  Value d;
  ArrayRef<bool> needed;
  SmallVectorImpl<Value> &cotangents;

  /// Appends the cotangent of operand `index`, which `build` builds; null if it is not needed.
  template <typename Fn> void operand(unsigned index, Fn build) const {
    cotangents.push_back(needed[index] ? build() : Value());
  }

  Value x(unsigned index = 0) const { return op->getOperand(index); }
  Value y() const { return op->getResult(0); }
  Value constant(Value like, double value) const {
    if (auto type = dyn_cast<RankedTensorType>(like.getType()))
      return createSplat(builder, op->getLoc(), type, value);
    return arith::ConstantOp::create(builder, op->getLoc(),
                                     builder.getFloatAttr(like.getType(), value));
  }
  template <typename Op, typename... Args> Value make(Args... args) const {
    return Op::create(builder, op->getLoc(), args...);
  }
  Value add(Value lhs, Value rhs) const { return make<arith::AddFOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) const { return make<arith::SubFOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) const { return make<arith::MulFOp>(lhs, rhs); }
  Value div(Value lhs, Value rhs) const { return make<arith::DivFOp>(lhs, rhs); }
  Value neg(Value value) const { return make<arith::NegFOp>(value); }
  Value scale(Value value, double factor) const { return mul(value, constant(value, factor)); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) const {
    return make<arith::CmpFOp>(predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) const {
    return make<arith::SelectOp>(condition, yes, no);
  }
};

/// The C++ expression of an element (see elementExpression): a text, or a function of the op.
struct Expression {
  Expression(const char *text) : text(text) {}
  Expression(std::string (*of)(Operation *)) : of(of) {}
  std::string get(Operation *op) const { return of ? of(op) : text; }

private:
  const char *text = nullptr;
  std::string (*of)(Operation *) = nullptr;
};

/// Operations per element of the result, and whether a loop may recompute them.
struct Work {
  int64_t flops;
  bool isCheap;
};
constexpr Work conversion{0, true}, cheap{1, true}, costly{1, false};

/// The properties of an op for the compiler.
struct Row {
  TypeID op;
  void (*attach)(const Row &row, MLIRContext &context);
  Work work;
  Linearity linearity; ///< how it acts on partial sums
  PrecisionClass precision;
  Expression expression;
  void (*differentiate)(const Backward &); ///< null if it has no derivative
};

} // namespace

using L = Linearity;
using P = PrecisionClass;

/// The row of `op`; null if there is none.
static const Row *findRow(Operation *op);

namespace {

template <typename Op>
struct RuleModel : ShardingRuleOpInterface::ExternalModel<RuleModel<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const { return ShardingRule::elementwise(op); }
  Linearity getLinearity(Operation *op) const { return findRow(op)->linearity; }
};

template <typename Op> struct CostModel : CostOpInterface::ExternalModel<CostModel<Op>, Op> {
  Cost getCost(Operation *op) const {
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    return costOf(op, findRow(op)->work.flops *
                          (type && type.hasStaticShape() ? type.getNumElements() : 1));
  }
};

template <typename Op> struct KernelModel : KernelOpInterface::ExternalModel<KernelModel<Op>, Op> {
  PrecisionClass getPrecisionClass(Operation *op) const { return findRow(op)->precision; }
  bool isElementwise(Operation *op) const { return true; }
  bool isCheap(Operation *op) const { return findRow(op)->work.isCheap; }
};

template <typename Op>
struct DerivativeModel : DifferentiableOpInterface::ExternalModel<DerivativeModel<Op>, Op> {
  Cotangents buildCotangents(Operation *op, OpBuilder &builder, ArrayRef<Value> d,
                             ArrayRef<bool> needed) const {
    SmallVector<Value> cotangents;
    if (!d[0])
      return SmallVector<Value>(op->getNumOperands());
    findRow(op)->differentiate({builder, op, d[0], needed, cotangents});
    return cotangents;
  }
};

} // namespace

template <typename Op>
static Row row(Work work, Linearity linearity, Expression expression,
               void (*differentiate)(const Backward &) = nullptr,
               PrecisionClass precision = P::elementwise) {
  auto attach = [](const Row &row, MLIRContext &context) {
    Op::template attachInterface<RuleModel<Op>, CostModel<Op>, KernelModel<Op>>(context);
    if (row.differentiate)
      Op::template attachInterface<DerivativeModel<Op>>(context);
  };
  return {TypeID::get<Op>(), attach, work, linearity, precision, expression, differentiate};
}

//===----------------------------------------------------------------------===//
// Expressions that depend on types or attributes
//===----------------------------------------------------------------------===//

/// By the number of the predicate.
static std::string compareFloats(Operation *op) {
  static constexpr const char *texts[] = {
      "false",                  // false
      "$0 == $1",               // oeq
      "$0 > $1",                // ogt
      "$0 >= $1",               // oge
      "$0 < $1",                // olt
      "$0 <= $1",               // ole
      "($0 < $1 || $0 > $1)",   // one
      "($0 == $0 && $1 == $1)", // ord
      "!($0 < $1 || $0 > $1)",  // ueq
      "!($0 <= $1)",            // ugt
      "!($0 < $1)",             // uge
      "!($0 >= $1)",            // ult
      "!($0 > $1)",             // ule
      "$0 != $1",               // une
      "($0 != $0 || $1 != $1)", // uno
      "true",                   // true
  };
  return texts[static_cast<size_t>(cast<arith::CmpFOp>(op).getPredicate())];
}

static bool isOfBools(Operation *op) {
  return getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1);
}

static std::string compareIntegers(Operation *op) {
  using Predicate = arith::CmpIPredicate;
  // eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge
  static constexpr const char *signs[] = {"==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="};
  const Predicate predicate = cast<arith::CmpIOp>(op).getPredicate();
  const std::string sign = signs[static_cast<size_t>(predicate)];
  if (predicate < Predicate::ult || isOfBools(op))
    return "$0 " + sign + " $1";
  const bool isLong = getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(64);
  std::string cast = isLong ? "std::uint64_t" : "std::uint32_t";
  return cast + "($0) " + sign + " " + cast + "($1)";
}

/// A signed i1 is 0 or -1.
static std::string signedValue(Operation *op) { return isOfBools(op) ? "@(-int($0))" : "@($0)"; }

static std::string unsignedValue(Operation *op) {
  if (isOfBools(op))
    return "@($0)";
  return getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(32) ? "@(std::uint32_t($0))"
                                                                         : "@(std::uint64_t($0))";
}

static std::string truncated(Operation *op) {
  return getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1) ? "($0 & 1) != 0" : "@($0)";
}

//===----------------------------------------------------------------------===//
// Derivatives that several rows or many lines have
//===----------------------------------------------------------------------===//

/// The cotangent goes to the operand that wins by `wins`, half to each at a tie.
template <arith::CmpFPredicate wins> static void differentiateExtremum(const Backward &b) {
  if (!b.needed[0] && !b.needed[1]) {
    b.cotangents.append(2, Value());
    return;
  }
  Value tie = b.compare(arith::CmpFPredicate::OEQ, b.x(0), b.x(1));
  Value otherwise = b.select(tie, b.scale(b.d, 0.5), b.constant(b.d, 0));
  b.operand(0, [&] { return b.select(b.compare(wins, b.x(0), b.x(1)), b.d, otherwise); });
  b.operand(1, [&] { return b.select(b.compare(wins, b.x(1), b.x(0)), b.d, otherwise); });
}

static void differentiateSelect(const Backward &b) {
  b.cotangents.push_back(Value());
  const bool isFloat = isa<FloatType>(getElementTypeOrSelf(b.y().getType()));
  b.operand(1, [&] { return isFloat ? b.select(b.x(0), b.d, b.constant(b.d, 0)) : Value(); });
  b.operand(2, [&] { return isFloat ? b.select(b.x(0), b.constant(b.d, 0), b.d) : Value(); });
}

static bool isNonzeroSplat(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()) &&
         !splat.getSplatValue<APFloat>().isZero();
}

static void differentiatePower(const Backward &b) {
  Value base = b.x(0), exponent = b.x(1);
  b.operand(0, [&] {
    // exponent * base^(exponent - 1), and 0 for the exponent 0 even where the base is 0.
    Value power = b.make<math::PowFOp>(base, b.sub(exponent, b.constant(exponent, 1)));
    Value slope = b.mul(exponent, power);
    if (!isNonzeroSplat(exponent)) {
      Value zero = b.constant(exponent, 0);
      slope = b.select(b.compare(arith::CmpFPredicate::OEQ, exponent, zero), zero, slope);
    }
    return b.mul(b.d, slope);
  });
  b.operand(1, [&] {
    Value zero = b.constant(base, 0);
    Value slope = b.mul(b.y(), b.make<math::LogOp>(base));
    slope = b.select(b.compare(arith::CmpFPredicate::OEQ, base, zero), zero, slope);
    return b.mul(b.d, slope);
  });
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static ArrayRef<Row> arithRows() {
  static const Row rows[] = {
      row<arith::AddFOp>(cheap, L::additive, "$0 + $1",
                         [](const Backward &b) {
                           b.operand(0, [&] { return b.d; });
                           b.operand(1, [&] { return b.d; });
                         }),
      row<arith::SubFOp>(cheap, L::additive, "$0 - $1",
                         [](const Backward &b) {
                           b.operand(0, [&] { return b.d; });
                           b.operand(1, [&] { return b.neg(b.d); });
                         }),
      row<arith::NegFOp>(cheap, L::additive, "-$0",
                         [](const Backward &b) { b.operand(0, [&] { return b.neg(b.d); }); }),
      row<arith::MulFOp>(cheap, L::product, "$0 * $1",
                         [](const Backward &b) {
                           b.operand(0, [&] { return b.mul(b.d, b.x(1)); });
                           b.operand(1, [&] { return b.mul(b.d, b.x(0)); });
                         }),
      row<arith::DivFOp>(costly, L::quotient, "$0 / $1",
                         [](const Backward &b) {
                           Value quotient;
                           if (b.needed[0] || b.needed[1])
                             quotient = b.div(b.d, b.x(1));
                           b.operand(0, [&] { return quotient; });
                           b.operand(1, [&] { return b.neg(b.mul(quotient, b.y())); });
                         }),
      row<arith::MaximumFOp>(cheap, L::homogeneous, "maximum($0, $1)",
                             differentiateExtremum<arith::CmpFPredicate::OGT>),
      row<arith::MinimumFOp>(cheap, L::homogeneous, "minimum($0, $1)",
                             differentiateExtremum<arith::CmpFPredicate::OLT>),
      row<arith::CmpFOp>(cheap, L::none, compareFloats),
      // Integer arithmetic wraps, so it is done on unsigned values.
      row<arith::AddIOp>(cheap, L::additive, "@(@u($0) + @u($1))"),
      row<arith::SubIOp>(cheap, L::additive, "@(@u($0) - @u($1))"),
      row<arith::MulIOp>(cheap, L::product, "@(@u($0) * @u($1))"),
      row<arith::AndIOp>(cheap, L::none, "@($0 & $1)"),
      row<arith::OrIOp>(cheap, L::none, "@($0 | $1)"),
      row<arith::XOrIOp>(cheap, L::none, "@($0 ^ $1)"),
      row<arith::CmpIOp>(cheap, L::none, compareIntegers),
      row<arith::SelectOp>(conversion, L::choice, "$0 ? $1 : $2", differentiateSelect),
      row<arith::SIToFPOp>(conversion, L::linearMap, signedValue),
      row<arith::UIToFPOp>(conversion, L::linearMap, unsignedValue),
      row<arith::FPToSIOp>(conversion, L::none, "@($0)"),
      row<arith::ExtSIOp>(conversion, L::linearMap, signedValue),
      row<arith::TruncIOp>(conversion, L::linearMap, truncated),
      // A cast of the model converts to the requested type; its operand may have a narrower type.
      row<arith::ExtFOp>(
          conversion, L::rounding, "@($0)",
          [](const Backward &b) {
            b.operand(0, [&] { return b.make<arith::TruncFOp>(b.x().getType(), b.d); });
          },
          P::any),
      row<arith::TruncFOp>(
          conversion, L::rounding, "@($0)",
          [](const Backward &b) {
            b.operand(0, [&] { return b.make<arith::ExtFOp>(b.x().getType(), b.d); });
          },
          P::fixed),
  };
  return rows;
}

static ArrayRef<Row> mathRows() {
  static const Row rows[] = {
      row<math::ExpOp>(costly, L::none, "#exp($0)",
                       [](const Backward &b) { b.operand(0, [&] { return b.mul(b.d, b.y()); }); }),
      row<math::LogOp>(costly, L::none, "#log($0)",
                       [](const Backward &b) { b.operand(0, [&] { return b.div(b.d, b.x()); }); }),
      row<math::Log1pOp>(costly, L::none, "#log1p($0)",
                         [](const Backward &b) {
                           b.operand(
                               0, [&] { return b.div(b.d, b.add(b.x(), b.constant(b.x(), 1))); });
                         }),
      row<math::SqrtOp>(
          costly, L::none, "#sqrt($0)",
          [](const Backward &b) { b.operand(0, [&] { return b.div(b.scale(b.d, 0.5), b.y()); }); }),
      row<math::RsqrtOp>(costly, L::none, "#rsqrt($0)",
                         [](const Backward &b) {
                           b.operand(0, [&] {
                             Value half = b.scale(b.d, -0.5);
                             return b.mul(half, b.mul(b.y(), b.mul(b.y(), b.y())));
                           });
                         }),
      row<math::TanhOp>(costly, L::none, "#tanh($0)",
                        [](const Backward &b) {
                          b.operand(0, [&] {
                            Value one = b.constant(b.y(), 1);
                            return b.mul(b.d, b.sub(one, b.mul(b.y(), b.y())));
                          });
                        }),
      row<math::ErfOp>(costly, L::none, "#erf($0)",
                       [](const Backward &b) {
                         b.operand(0, [&] {
                           Value density = b.make<math::ExpOp>(b.neg(b.mul(b.x(), b.x())));
                           return b.mul(b.d, b.scale(density, 2 / std::sqrt(M_PI)));
                         });
                       }),
      row<math::AbsFOp>(costly, L::none, "#fabs($0)",
                        [](const Backward &b) {
                          b.operand(0, [&] {
                            Value zero = b.constant(b.x(), 0);
                            Value isBelow = b.compare(arith::CmpFPredicate::OLT, b.x(), zero);
                            Value below = b.select(isBelow, b.neg(b.d), zero);
                            Value isAbove = b.compare(arith::CmpFPredicate::OGT, b.x(), zero);
                            return b.select(isAbove, b.d, below);
                          });
                        }),
      row<math::SinOp>(costly, L::none, "#sin($0)",
                       [](const Backward &b) {
                         b.operand(0, [&] { return b.mul(b.d, b.make<math::CosOp>(b.x())); });
                       }),
      row<math::CosOp>(costly, L::none, "#cos($0)",
                       [](const Backward &b) {
                         b.operand(0,
                                   [&] { return b.neg(b.mul(b.d, b.make<math::SinOp>(b.x()))); });
                       }),
      row<math::PowFOp>(costly, L::none, "#pow($0, $1)", differentiatePower),
      row<math::FmaOp>(costly, L::none, "#fma($0, $1, $2)",
                       [](const Backward &b) {
                         b.operand(0, [&] { return b.mul(b.d, b.x(1)); });
                         b.operand(1, [&] { return b.mul(b.d, b.x(0)); });
                         b.operand(2, [&] { return b.d; });
                       }),
  };
  return rows;
}

static const Row *findRow(Operation *op) {
  static const llvm::DenseMap<TypeID, const Row *> known = [] {
    llvm::DenseMap<TypeID, const Row *> known;
    for (ArrayRef<Row> rows : {arithRows(), mathRows()})
      for (const Row &row : rows)
        known[row.op] = &row;
    return known;
  }();
  return known.lookup(op->getName().getTypeID());
}

std::string mlir::nn::elementExpression(Operation *op) {
  const Row *row = findRow(op);
  return row ? row->expression.get(op) : "";
}

//===----------------------------------------------------------------------===//
// Constants, and registration
//===----------------------------------------------------------------------===//

namespace {

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

} // namespace

void mlir::nn::registerElementwiseModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    for (const Row &row : arithRows())
      row.attach(row, *context);
    arith::ConstantOp::attachInterface<ConstantModel, ConstantCost>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    for (const Row &row : mathRows())
      row.attach(row, *context);
  });
}

Linearity mlir::nn::getLinearity(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled ? ruled.getLinearity() : Linearity::none;
}

bool mlir::nn::isElementwise(Operation *op) {
  if (isa<arith::ConstantOp>(op) || op->getNumResults() != 1 ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         isa<ShardingRuleOpInterface>(op);
}
