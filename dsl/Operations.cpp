//===- Operations.cpp - arithmetic and averages ---------------------------===//

#include "dsl/Operations.h"
#include "dsl/Model.h"
#include "dsl/ModelIR.h"

#include "dialect/nn/NNDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace fsdp::dsl {

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

/// Repeats `input` along the leading dimensions it lacks of `shape`.
static Value broadcast(OpBuilder &builder, Location loc, Value input, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getShape() == shape)
    return input;
  std::string all, own;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::string name = "d" + std::to_string(dim);
    all += " " + name;
    if (dim >= shape.size() - type.getRank())
      own += (own.empty() ? "" : " ") + name;
  }
  return nn::RepeatOp::create(builder, loc, type.clone(shape),
                              own + (own.empty() ? "->" : " ->") + all, input);
}

/// Brings the operands of an elementwise operation to one shape, or throws.
static SmallVector<Value> align(const std::string &what, ArrayRef<Located> operands,
                                OpBuilder &builder, Location loc) {
  ArrayRef<int64_t> shape;
  for (const Located &operand : operands)
    if (typeOf(operand).getRank() >= static_cast<int64_t>(shape.size()))
      shape = typeOf(operand).getShape();
  SmallVector<Value> values;
  for (const Located &operand : operands) {
    ArrayRef<int64_t> own = typeOf(operand).getShape();
    if (shape.take_back(own.size()) != own)
      fail(what, operands,
           "shapes do not fit; expected equal shapes, or one that is the trailing part of "
           "the other (use 'repeat' for any other broadcast)");
    values.push_back(broadcast(builder, loc, valueOf(operand), shape));
  }
  return values;
}

/// The element type of both operands, or throws.
static Type requireSame(const char *what, const Located &lhs, const Located &rhs) {
  Type element = typeOf(lhs).getElementType();
  if (element != typeOf(rhs).getElementType())
    fail(what, {lhs, rhs}, "element types differ; expected the same on both sides");
  return element;
}

template <typename FloatOp, typename IntOp>
static Tensor binary(const char *what, const Located &lhs, const Located &rhs) {
  Type element = requireSame(what, lhs, rhs);
  return create(what, {lhs, rhs}, [&](OpBuilder &builder, Location loc) -> Value {
    SmallVector<Value> values = align(what, {lhs, rhs}, builder, loc);
    if (isa<FloatType>(element))
      return FloatOp::create(builder, loc, values[0], values[1]);
    return IntOp::create(builder, loc, values[0], values[1]);
  });
}

template <typename Op> static Tensor unary(const char *what, const Located &input) {
  requireFloat(what, input);
  return createOp<Op>(what, {input}, valueOf(input));
}

/// `value` as a tensor of the type of `like`.
static Located scalarLike(const Located &like, double value) {
  Type type = typeOf(like).getElementType();
  ElementType element = type.isF32()         ? ElementType::f32
                        : type.isF64()       ? ElementType::f64
                        : type.isInteger(32) ? ElementType::i32
                                             : ElementType::i64;
  return Located(builderOf(like).scalar(value, element, like.where), like.where);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Tensor operator+(Located lhs, Located rhs) {
  return binary<arith::AddFOp, arith::AddIOp>("add", lhs, rhs);
}
Tensor operator-(Located lhs, Located rhs) {
  return binary<arith::SubFOp, arith::SubIOp>("subtract", lhs, rhs);
}
Tensor operator*(Located lhs, Located rhs) {
  return binary<arith::MulFOp, arith::MulIOp>("multiply", lhs, rhs);
}
Tensor operator/(Located lhs, Located rhs) {
  requireFloat("divide", lhs);
  return binary<arith::DivFOp, arith::DivSIOp>("divide", lhs, rhs);
}
Tensor operator+(Located lhs, double rhs) { return lhs + scalarLike(lhs, rhs); }
Tensor operator-(Located lhs, double rhs) { return lhs - scalarLike(lhs, rhs); }
Tensor operator*(Located lhs, double rhs) { return lhs * scalarLike(lhs, rhs); }
Tensor operator/(Located lhs, double rhs) { return lhs / scalarLike(lhs, rhs); }
Tensor operator+(double lhs, Located rhs) { return scalarLike(rhs, lhs) + rhs; }
Tensor operator-(double lhs, Located rhs) { return scalarLike(rhs, lhs) - rhs; }
Tensor operator*(double lhs, Located rhs) { return scalarLike(rhs, lhs) * rhs; }
Tensor operator/(double lhs, Located rhs) { return scalarLike(rhs, lhs) / rhs; }

Tensor operator-(Located input) { return unary<arith::NegFOp>("negate", input); }
Tensor maximum(Located lhs, Located rhs) {
  return binary<arith::MaximumFOp, arith::MaxSIOp>("maximum", lhs, rhs);
}
Tensor minimum(Located lhs, Located rhs) {
  return binary<arith::MinimumFOp, arith::MinSIOp>("minimum", lhs, rhs);
}
Tensor exp(Located input) { return unary<math::ExpOp>("exp", input); }
Tensor log(Located input) { return unary<math::LogOp>("log", input); }
Tensor sqrt(Located input) { return unary<math::SqrtOp>("sqrt", input); }
Tensor rsqrt(Located input) { return unary<math::RsqrtOp>("rsqrt", input); }
Tensor tanh(Located input) { return unary<math::TanhOp>("tanh", input); }
Tensor abs(Located input) { return unary<math::AbsFOp>("abs", input); }

namespace {

/// Elementwise arithmetic on one value, as parts of one operation.
struct Arithmetic {
  OpBuilder &builder;
  Location loc;
  Value constant(Value like, double value) const {
    auto type = cast<RankedTensorType>(like.getType());
    FloatAttr element = builder.getFloatAttr(type.getElementType(), value);
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, element.getValue()));
  }
  Value add(Value lhs, Value rhs) const { return arith::AddFOp::create(builder, loc, lhs, rhs); }
  Value mul(Value lhs, Value rhs) const { return arith::MulFOp::create(builder, loc, lhs, rhs); }
  Value scale(Value value, double by) const { return mul(value, constant(value, by)); }
  Value tanh(Value value) const { return math::TanhOp::create(builder, loc, value); }
};

} // namespace

/// The operation that `compute` describes on floats.
static Tensor elementwise(const char *what, const Located &input,
                          llvm::function_ref<Value(const Arithmetic &, Value)> compute) {
  requireFloat(what, input);
  return create(what, {input}, [&](OpBuilder &builder, Location loc) {
    return compute(Arithmetic{builder, loc}, valueOf(input));
  });
}

Tensor square(Located input) {
  return elementwise("square", input, [](const Arithmetic &a, Value x) { return a.mul(x, x); });
}

Tensor relu(Located input) {
  // select(x > 0, x, 0) has the gradient 0 at 0, as the references have.
  return elementwise("relu", input, [](const Arithmetic &a, Value x) -> Value {
    Value zero = a.constant(x, 0);
    Value positive = arith::CmpFOp::create(a.builder, a.loc, arith::CmpFPredicate::OGT, x, zero);
    return arith::SelectOp::create(a.builder, a.loc, positive, x, zero);
  });
}

Tensor gelu(Located input) {
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  return elementwise("gelu", input, [](const Arithmetic &a, Value x) {
    Value cube = a.mul(a.mul(x, x), x);
    Value inner = a.scale(a.add(x, a.scale(cube, 0.044715)), std::sqrt(2 / M_PI));
    Value tanh = a.tanh(inner);
    return a.mul(a.scale(x, 0.5), a.add(tanh, a.constant(x, 1)));
  });
}

Tensor geluErf(Located input) {
  return elementwise("geluErf", input, [](const Arithmetic &a, Value x) {
    Value erf = math::ErfOp::create(a.builder, a.loc, a.scale(x, std::sqrt(0.5)));
    return a.mul(a.scale(x, 0.5), a.add(erf, a.constant(x, 1)));
  });
}

Tensor silu(Located input) {
  // x/2 (1 + tanh(x/2)) is x / (1 + exp(-x)) without an exponential that overflows.
  return elementwise("silu", input, [](const Arithmetic &a, Value x) {
    Value half = a.scale(x, 0.5), tanh = a.tanh(half);
    return a.mul(half, a.add(tanh, a.constant(x, 1)));
  });
}

/// 1.0 or 0.0 for the outcome of a comparison.
static Tensor compare(const char *what, const Located &lhs, const Located &rhs,
                      arith::CmpFPredicate floats, arith::CmpIPredicate integers) {
  Type element = requireSame(what, lhs, rhs);
  return create(what, {lhs, rhs}, [&](OpBuilder &builder, Location loc) -> Value {
    SmallVector<Value> values = align(what, {lhs, rhs}, builder, loc);
    Value flag;
    if (isa<FloatType>(element))
      flag = arith::CmpFOp::create(builder, loc, floats, values[0], values[1]);
    else
      flag = arith::CmpIOp::create(builder, loc, integers, values[0], values[1]);
    auto type = cast<RankedTensorType>(flag.getType()).clone(builder.getF32Type());
    return arith::UIToFPOp::create(builder, loc, type, flag);
  });
}

Tensor equal(Located lhs, Located rhs) {
  return compare("equal", lhs, rhs, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
}

Tensor greater(Located lhs, Located rhs) {
  return compare("greater", lhs, rhs, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
}

Tensor select(Located condition, Located yes, Located no) {
  requireFloat("select", condition);
  const Located operands[] = {condition, yes, no};
  return create("select", operands, [&](OpBuilder &builder, Location loc) -> Value {
    SmallVector<Value> values = align("select", operands, builder, loc);
    Value zero = Arithmetic{builder, loc}.constant(values[0], 0);
    Value flag = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, values[0], zero);
    return arith::SelectOp::create(builder, loc, flag, values[1], values[2]);
  });
}

//===----------------------------------------------------------------------===//
// Averages
//===----------------------------------------------------------------------===//

/// The sum of all elements in double.
static Tensor total(const char *what, const Located &input) {
  requireFloat(what, input);
  std::string notation;
  for (int64_t dim = 0; dim < input.tensor.rank(); ++dim)
    notation += "d" + std::to_string(dim) + " ";
  auto type = RankedTensorType::get({}, builderOf(input).builder.getF64Type());
  return createOp<nn::ReduceOp>(what, {input}, type, nn::Reduction::sum, notation + "->",
                                valueOf(input));
}

Average mean(Located values) {
  double count = static_cast<double>(typeOf(values).getNumElements());
  if (count == 0)
    fail("mean", {values}, "there are no elements to average");
  return {total("mean", values), builderOf(values).scalar(count, ElementType::f64, values.where)};
}

Average weightedMean(Located values, Located weights) {
  if (values.tensor.shape() != weights.tensor.shape())
    fail("weightedMean", {values, weights}, "shapes differ; expected one weight for each value");
  return {total("weightedMean", Located(values * weights, values.where)),
          total("weightedMean", weights)};
}

void print(Located value, const std::string &name) {
  builderOf(value).print(name, value.tensor, value.where);
}

void check(Located value, const std::string &name) {
  builderOf(value).check(name, value.tensor, value.where);
}

} // namespace fsdp::dsl
