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
static SmallVector<Value> align(const std::string &what, ArrayRef<frontend::ModelValue> operands,
                                Where where, OpBuilder &builder, Location loc) {
  ArrayRef<int64_t> shape;
  for (const frontend::ModelValue &operand : operands)
    if (typeOf(operand).getRank() >= static_cast<int64_t>(shape.size()))
      shape = typeOf(operand).getShape();
  SmallVector<Value> values;
  for (const frontend::ModelValue &operand : operands) {
    ArrayRef<int64_t> own = typeOf(operand).getShape();
    if (shape.take_back(own.size()) != own)
      ModelBuilder::fail(
          what, operands, where,
          "shapes do not fit; expected equal shapes, or one that is the trailing part of "
          "the other (use 'repeat' for any other broadcast)");
    values.push_back(broadcast(builder, loc, valueOf(operand), shape));
  }
  return values;
}

template <typename FloatOp, typename IntOp>
static Tensor binary(const char *what, const Located &lhs, const Located &rhs) {
  Type left = typeOf(lhs.tensor).getElementType(), right = typeOf(rhs.tensor).getElementType();
  if (left != right)
    ModelBuilder::fail(what, {lhs.tensor, rhs.tensor}, lhs.where,
                       "element types differ; expected the same on both sides");
  return builderOf(lhs.tensor)
      .create(what, {lhs.tensor, rhs.tensor}, lhs.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                SmallVector<Value> values =
                    align(what, {lhs.tensor, rhs.tensor}, lhs.where, builder, loc);
                if (isa<FloatType>(left))
                  return FloatOp::create(builder, loc, values[0], values[1]);
                return IntOp::create(builder, loc, values[0], values[1]);
              });
}

template <typename Op> static Tensor unary(const char *what, const Located &input) {
  requireFloat(what, input);
  return builderOf(input.tensor)
      .create(what, {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return Op::create(builder, loc, valueOf(input.tensor));
      });
}

/// `value` as a tensor of the type of `like`.
static Located scalarLike(const Located &like, double value) {
  RankedTensorType type = typeOf(like.tensor);
  ElementType element = type.getElementType().isF32()         ? ElementType::f32
                        : type.getElementType().isF64()       ? ElementType::f64
                        : type.getElementType().isInteger(32) ? ElementType::i32
                                                              : ElementType::i64;
  return Located(builderOf(like.tensor).scalar(value, element, like.where), like.where);
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

Tensor square(Located input) {
  requireFloat("square", input);
  return builderOf(input.tensor)
      .create("square", {input.tensor}, input.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                return arith::MulFOp::create(builder, loc, valueOf(input.tensor),
                                             valueOf(input.tensor));
              });
}

Tensor relu(Located input) {
  requireFloat("relu", input);
  // select(x > 0, x, 0) has the gradient 0 at 0, as the references have.
  return builderOf(input.tensor)
      .create("relu", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        RankedTensorType type = typeOf(input.tensor);
        Value zero = arith::ConstantOp::create(
            builder, loc,
            DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 0)));
        Value positive = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                                               valueOf(input.tensor), zero);
        return arith::SelectOp::create(builder, loc, positive, valueOf(input.tensor), zero);
      });
}

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
};

} // namespace

Tensor gelu(Located input) {
  requireFloat("gelu", input);
  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  return builderOf(input.tensor)
      .create("gelu", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        Arithmetic a{builder, loc};
        Value x = valueOf(input.tensor);
        Value cube = a.mul(a.mul(x, x), x);
        Value inner = a.scale(a.add(x, a.scale(cube, 0.044715)), std::sqrt(2 / M_PI));
        Value tanh = math::TanhOp::create(builder, loc, inner);
        return a.mul(a.scale(x, 0.5), a.add(tanh, a.constant(x, 1)));
      });
}

Tensor geluErf(Located input) {
  requireFloat("geluErf", input);
  return builderOf(input.tensor)
      .create("geluErf", {input.tensor}, input.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                Arithmetic a{builder, loc};
                Value x = valueOf(input.tensor);
                Value erf = math::ErfOp::create(builder, loc, a.scale(x, std::sqrt(0.5)));
                return a.mul(a.scale(x, 0.5), a.add(erf, a.constant(x, 1)));
              });
}

Tensor silu(Located input) {
  requireFloat("silu", input);
  // x/2 (1 + tanh(x/2)) is x / (1 + exp(-x)) without an exponential that overflows.
  return builderOf(input.tensor)
      .create("silu", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        Arithmetic a{builder, loc};
        Value x = valueOf(input.tensor), half = a.scale(x, 0.5);
        Value tanh = math::TanhOp::create(builder, loc, half);
        return a.mul(half, a.add(tanh, a.constant(x, 1)));
      });
}

/// 1.0 or 0.0 for the outcome of a comparison.
static Tensor compare(const char *what, const Located &lhs, const Located &rhs,
                      arith::CmpFPredicate floats, arith::CmpIPredicate integers) {
  Type element = typeOf(lhs.tensor).getElementType();
  if (element != typeOf(rhs.tensor).getElementType())
    ModelBuilder::fail(what, {lhs.tensor, rhs.tensor}, lhs.where,
                       "element types differ; expected the same on both sides");
  return builderOf(lhs.tensor)
      .create(what, {lhs.tensor, rhs.tensor}, lhs.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                SmallVector<Value> values =
                    align(what, {lhs.tensor, rhs.tensor}, lhs.where, builder, loc);
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
  std::vector<frontend::ModelValue> operands = {condition.tensor, yes.tensor, no.tensor};
  return builderOf(condition.tensor)
      .create("select", operands, condition.where, [&](OpBuilder &builder, Location loc) -> Value {
        SmallVector<Value> values = align("select", operands, condition.where, builder, loc);
        auto type = cast<RankedTensorType>(values[0].getType());
        Value zero = arith::ConstantOp::create(
            builder, loc,
            DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 0)));
        Value flag =
            arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, values[0], zero);
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
  return builderOf(input.tensor)
      .create(what, {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        auto type = RankedTensorType::get({}, builder.getF64Type());
        return nn::ReduceOp::create(builder, loc, type, nn::Reduction::sum, notation + "->",
                                    valueOf(input.tensor));
      });
}

Average mean(Located values) {
  double count = static_cast<double>(typeOf(values.tensor).getNumElements());
  if (count == 0)
    ModelBuilder::fail("mean", {values.tensor}, values.where, "there are no elements to average");
  return {total("mean", values),
          builderOf(values.tensor).scalar(count, ElementType::f64, values.where)};
}

Average weightedMean(Located values, Located weights) {
  if (values.tensor.shape() != weights.tensor.shape())
    ModelBuilder::fail("weightedMean", {values.tensor, weights.tensor}, values.where,
                       "shapes differ; expected one weight for each value");
  return {total("weightedMean", Located(values * weights, values.where)),
          total("weightedMean", weights)};
}

void print(Located value, const std::string &name) {
  builderOf(value.tensor).print(name, value.tensor, value.where);
}

void check(Located value, const std::string &name) {
  builderOf(value.tensor).check(name, value.tensor, value.where);
}

} // namespace fsdp::dsl
