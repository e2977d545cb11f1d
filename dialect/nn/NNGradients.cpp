//===- NNGradients.cpp - reverse mode of the nn ops -----------------------===//
//
// Every method appends one cotangent per operand and builds nothing for an operand that
// is not needed. Cotangents have the types of the values they belong to.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

static Value splat(OpBuilder &builder, Location loc, RankedTensorType type, double value) {
  return arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value).getValue()));
}

static bool isFloat(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

/// The notation with `from` and `to` as its only operand and its result.
static std::string einops(NotationTensor from, NotationTensor to) {
  Notation notation;
  notation.operands.push_back(std::move(from));
  notation.result = std::move(to);
  return notation.printEinops();
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
LogicalResult EinsumOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                        ArrayRef<bool> needed,
                                        SmallVectorImpl<Value> &operandCotangents) {
  Value d = resultCotangents[0];
  Notation pattern = getPattern();
  Value lhs, rhs;
  if (d && needed[0]) {
    Notation transposed;
    transposed.operands = {pattern.result, pattern.operands[1]};
    transposed.result = pattern.operands[0];
    lhs = EinsumOp::create(builder, getLoc(), getLhs().getType(), transposed.printEinsum(), d,
                           getRhs());
  }
  if (d && needed[1]) {
    Notation transposed;
    transposed.operands = {pattern.operands[0], pattern.result};
    transposed.result = pattern.operands[1];
    rhs = EinsumOp::create(builder, getLoc(), getRhs().getType(), transposed.printEinsum(),
                           getLhs(), d);
  }
  operandCotangents.append({lhs, rhs});
  return success();
}

LogicalResult RearrangeOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                           ArrayRef<bool> needed,
                                           SmallVectorImpl<Value> &operandCotangents) {
  Value d = resultCotangents[0];
  Value input;
  if (d && needed[0] && isFloat(getInput())) {
    Notation pattern = getPattern();
    input =
        RearrangeOp::create(builder, getLoc(), getInput().getType(),
                            einops(pattern.result, pattern.operands.front()), d, getSizesAttr());
  }
  operandCotangents.push_back(input);
  return success();
}

LogicalResult RepeatOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                        ArrayRef<bool> needed,
                                        SmallVectorImpl<Value> &operandCotangents) {
  Value d = resultCotangents[0];
  Value input;
  if (d && needed[0] && isFloat(getInput())) {
    Notation pattern = getPattern();
    input = sumOf(builder, getLoc(), getInput().getType().getShape(),
                  einops(pattern.result, pattern.operands.front()), d);
  }
  operandCotangents.push_back(input);
  return success();
}

LogicalResult ReduceOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                        ArrayRef<bool> needed,
                                        SmallVectorImpl<Value> &operandCotangents) {
  Value d = resultCotangents[0];
  if (!d || !needed[0] || !isFloat(getInput())) {
    operandCotangents.push_back(Value());
    return success();
  }
  Location loc = getLoc();
  Notation pattern = getPattern();
  RankedTensorType type = getInput().getType();
  Type element = type.getElementType();
  std::string back = einops(pattern.result, pattern.operands.front());

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
    d = arith::DivFOp::create(builder, loc, d, splat(builder, loc, getType(), count));
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
    operandCotangents.push_back(
        arith::SelectOp::create(builder, loc, attains, shares, splat(builder, loc, type, 0)));
    return success();
  }
  }
  operandCotangents.push_back(RepeatOp::create(builder, loc, type, back, d));
  return success();
}

//===----------------------------------------------------------------------===//
// Row ops
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                              ArrayRef<bool> needed,
                                              SmallVectorImpl<Value> &operandCotangents) {
  Location loc = getLoc();
  RankedTensorType type = getLogits().getType();
  if (getGradient())
    return emitOpError("has a 'gradient', which has no gradient itself; use "
                       "'nn.cross_entropy_grad' where it is needed");
  Value logits;
  if (needed[0] && resultCotangents[0])
    logits = CrossEntropyGradOp::create(builder, loc, type, getLogits(), getLabels(),
                                        getLogSumExp(), resultCotangents[0],
                                        /*count=*/Value());
  if (needed[0] && resultCotangents[1]) {
    // d log_sum_exp / d logits is the softmax.
    NotationTensor whole;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      whole.push_back({"d" + std::to_string(dim)});
    NotationTensor rows(whole.begin(), std::prev(whole.end()));
    std::string back = einops(rows, whole);
    auto wide = cast<RankedTensorType>(getSumType(type));
    Value x = getLogits();
    if (wide != type)
      x = arith::ExtFOp::create(builder, loc, wide, x);
    Value shift = RepeatOp::create(builder, loc, wide, back, getLogSumExp());
    Value softmax =
        math::ExpOp::create(builder, loc, arith::SubFOp::create(builder, loc, x, shift));
    Value d = RepeatOp::create(builder, loc, wide, back, resultCotangents[1]);
    Value product =
        narrowTo(builder, arith::MulFOp::create(builder, loc, softmax, d), type.getElementType());
    logits = logits ? arith::AddFOp::create(builder, loc, logits, product).getResult() : product;
  }
  operandCotangents.append({logits, Value()});
  return success();
}
