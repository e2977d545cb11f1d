//===- NNGradients.cpp - reverse mode of the nn ops -----------------------===//
//
// Every method appends one cotangent per operand and builds nothing for an operand that
// is not needed. Cotangents have the types of the values they belong to.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/NNDialect.h"

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

/// Rounds a cotangent to the narrower element type of the operand it flows to.
static Value narrow(OpBuilder &builder, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return arith::TruncFOp::create(builder, loc, type.clone(element), value);
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
    input = ReduceOp::create(builder, getLoc(), getInput().getType(), Reduction::sum,
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
    d = narrow(builder, loc, d, element);
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
    d = narrow(builder, loc, d, element);
    break;
  }
  case Reduction::max: {
    // Widening is exact, so that the maximum narrowed again equals the elements that attain it.
    RankedTensorType rows = getType().clone(element);
    Value largest =
        RepeatOp::create(builder, loc, type, back, narrow(builder, loc, getResult(), element));
    Value attains =
        arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, getInput(), largest);
    Value ones = arith::UIToFPOp::create(builder, loc, type, attains);
    Value count = ReduceOp::create(builder, loc, rows, Reduction::sum, getNotation(), ones);
    Value share = arith::DivFOp::create(builder, loc, narrow(builder, loc, d, element), count);
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
  Value logits;
  if (needed[0] && resultCotangents[0])
    logits = CrossEntropyGradOp::create(builder, loc, type, getLogits(), getLabels(),
                                        getLogSumExp(), resultCotangents[0]);
  if (needed[0] && resultCotangents[1]) {
    // d log_sum_exp / d logits is the softmax.
    NotationTensor whole;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      whole.push_back({"d" + std::to_string(dim)});
    NotationTensor rows(ArrayRef<NotationDim>(whole).drop_back());
    std::string back = einops(rows, whole);
    Value shift = RepeatOp::create(builder, loc, type, back, getLogSumExp());
    Value softmax =
        math::ExpOp::create(builder, loc, arith::SubFOp::create(builder, loc, getLogits(), shift));
    Value d = RepeatOp::create(builder, loc, type, back, resultCotangents[1]);
    Value product = arith::MulFOp::create(builder, loc, softmax, d);
    logits = logits ? arith::AddFOp::create(builder, loc, logits, product).getResult() : product;
  }
  operandCotangents.append({logits, Value()});
  return success();
}
