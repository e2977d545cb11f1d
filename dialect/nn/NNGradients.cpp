//===- NNGradients.cpp - reverse mode of the nn ops -----------------------===//
//
// Every method returns one cotangent per operand and builds nothing for an operand that
// is not needed. Cotangents have the types of the values they belong to.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/Precision.h"
#include "dialect/nn/RowMath.h"

using namespace mlir;
using namespace mlir::nn;

static bool isFloat(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

Type mlir::nn::getSumType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isBF16() && !element.isF16())
    return type;
  element = Float32Type::get(type.getContext());
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? Type(tensor.clone(element)) : element;
}

Value mlir::nn::narrowTo(OpBuilder &builder, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return arith::TruncFOp::create(builder, value.getLoc(), type.clone(element), value);
}

Value mlir::nn::createSplat(OpBuilder &builder, Location loc, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  Attribute number = isa<FloatType>(element)
                         ? Attribute(builder.getFloatAttr(element, value))
                         : builder.getIntegerAttr(element, static_cast<int64_t>(value));
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(tensor, number));
}

/// A sum of `value` by einops `notation`, in the type of sums, converted to the type of `value`.
static Value sumOf(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, StringRef notation,
                   Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  Value sum = ReduceOp::create(builder, loc, RankedTensorType::get(shape, getSumType(element)),
                               Reduction::sum, notation, value);
  return narrowTo(builder, sum, element);
}

//===----------------------------------------------------------------------===//
// Structured ops
//===----------------------------------------------------------------------===//

// An einsum is linear in each operand; its transpose swaps that operand with the result.
Cotangents EinsumOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d, ArrayRef<bool> needed) {
  Notation pattern = getPattern();
  Value lhs, rhs;
  if (d[0] && needed[0]) {
    Notation transposed;
    transposed.operands = {pattern.result, pattern.operands[1]};
    transposed.result = pattern.operands[0];
    lhs = EinsumOp::create(builder, getLoc(), getLhs().getType(), transposed.printEinsum(), d[0],
                           getRhs());
  }
  if (d[0] && needed[1]) {
    Notation transposed;
    transposed.operands = {pattern.operands[0], pattern.result};
    transposed.result = pattern.operands[1];
    rhs = EinsumOp::create(builder, getLoc(), getRhs().getType(), transposed.printEinsum(),
                           getLhs(), d[0]);
  }
  return SmallVector<Value>{lhs, rhs};
}

/// The notation of `pattern` with operand and result exchanged.
static std::string inverse(const Notation &pattern) {
  return RowMath::einops(pattern.result, pattern.operands.front());
}

Cotangents RearrangeOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                        ArrayRef<bool> needed) {
  Value input;
  if (d[0] && needed[0] && isFloat(getInput()))
    input = RearrangeOp::create(builder, getLoc(), getInput().getType(), inverse(getPattern()),
                                d[0], getSizesAttr());
  return SmallVector<Value>{input};
}

Cotangents RepeatOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d, ArrayRef<bool> needed) {
  Value input;
  if (d[0] && needed[0] && isFloat(getInput()))
    input = sumOf(builder, getLoc(), getInput().getType().getShape(), inverse(getPattern()), d[0]);
  return SmallVector<Value>{input};
}

Cotangents ReduceOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> cotangents,
                                     ArrayRef<bool> needed) {
  Value d = cotangents[0];
  if (!d || !needed[0] || !isFloat(getInput()))
    return SmallVector<Value>{Value()};
  Location loc = getLoc();
  RankedTensorType type = getInput().getType();
  Type element = type.getElementType();
  std::string back = inverse(getPattern());
  switch (getKind()) {
  case Reduction::sum:
    d = narrowTo(builder, d, element);
    break;
  case Reduction::mean: {
    // Divided before rounding, in the wider type.
    llvm::StringMap<int64_t> sizes = getNameSizes();
    double count = 1;
    for (const auto &entry : sizes)
      count *= entry.second;
    for (int64_t size : getType().getShape())
      count /= size;
    d = arith::DivFOp::create(builder, loc, d, createSplat(builder, loc, getType(), count));
    d = narrowTo(builder, d, element);
    break;
  }
  case Reduction::max: {
    // Widening is exact, so that the maximum narrowed again equals the elements that attain it.
    Value largest =
        RepeatOp::create(builder, loc, type, back, narrowTo(builder, getResult(), element));
    Value attains =
        arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, getInput(), largest);
    Value ones = arith::UIToFPOp::create(builder, loc, type, attains);
    Value count = sumOf(builder, loc, getType().getShape(), getNotation(), ones);
    Value share = arith::DivFOp::create(builder, loc, narrowTo(builder, d, element), count);
    Value shares = RepeatOp::create(builder, loc, type, back, share);
    return SmallVector<Value>{
        arith::SelectOp::create(builder, loc, attains, shares, createSplat(builder, loc, type, 0))};
  }
  }
  return SmallVector<Value>{RepeatOp::create(builder, loc, type, back, d)};
}

//===----------------------------------------------------------------------===//
// Row ops
//===----------------------------------------------------------------------===//

Cotangents CrossEntropyOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                           ArrayRef<bool> needed) {
  Location loc = getLoc();
  RankedTensorType type = getLogits().getType();
  if (getGradient())
    return emitOpError("has a 'gradient', which has no gradient itself; use "
                       "'nn.cross_entropy_grad' where it is needed");
  Value logits;
  if (needed[0] && d[0])
    logits = CrossEntropyGradOp::create(builder, loc, type, getLogits(), getLabels(),
                                        getLogSumExp(), d[0], /*count=*/Value());
  if (needed[0] && d[1]) {
    // d log_sum_exp / d logits is the softmax.
    RowMath m = RowMath::alongLast(builder, loc, getLogits());
    Value x = m.widened(getLogits());
    Value softmax = math::ExpOp::create(builder, loc, m.sub(x, m.ofRows(getLogSumExp())));
    Value product = m.narrowed(m.mul(softmax, m.ofRows(d[1])), type);
    logits = logits ? m.add(logits, product) : product;
  }
  return SmallVector<Value>{logits, Value()};
}
