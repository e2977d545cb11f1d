//===- ShapeOps.cpp - cut, extend and join along a dimension --------------===//

#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// `dim` is a dimension of `type`, and `other` differs from `type` only there.
static LogicalResult verifyAlong(Operation *op, int64_t dim, RankedTensorType type,
                                 RankedTensorType other) {
  if (dim < 0 || dim >= type.getRank())
    return op->emitOpError("works along dimension ")
           << dim << ", expected one of the " << type.getRank() << " dimensions of " << type;
  bool fits = other.getRank() == type.getRank();
  for (int64_t i = 0; fits && i < type.getRank(); ++i)
    fits = i == dim || other.getDimSize(i) == type.getDimSize(i);
  if (!fits)
    return op->emitOpError("maps ")
           << type << " to " << other << ", expected the same shape except in dimension " << dim;
  return success();
}

/// `size` elements from `start` on lie inside `within`.
static LogicalResult verifyRange(Operation *op, int64_t start, int64_t size, int64_t within) {
  if (start >= 0 && size <= within && start <= within - size)
    return success();
  return op->emitOpError("has a range of ")
         << size << " elements from " << start << " in a dimension of " << within
         << ", expected a range inside the dimension";
}

LogicalResult SliceOp::verify() {
  RankedTensorType from = getInput().getType(), to = getType();
  int64_t dim = getDim();
  // (C1), (C2)
  if (failed(verifyAlong(*this, dim, from, to)))
    return failure();
  // (C3)
  return verifyRange(*this, getStart(), to.getDimSize(dim), from.getDimSize(dim));
}

LogicalResult PadOp::verify() {
  RankedTensorType from = getInput().getType(), to = getType();
  int64_t dim = getDim();
  // (C1), (C2)
  if (failed(verifyAlong(*this, dim, from, to)))
    return failure();
  // (C3)
  return verifyRange(*this, getLow(), from.getDimSize(dim), to.getDimSize(dim));
}

LogicalResult ConcatOp::verify() {
  int64_t dim = getDim(), sum = 0;
  // (C1)
  if (getInputs().empty())
    return emitOpError("has no inputs, expected at least one tensor");
  for (Value input : getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    // (C1), (C2)
    if (failed(verifyAlong(*this, dim, getType(), type)))
      return failure();
    if (type.getElementType() != getType().getElementType())
      return emitOpError("concatenates ") << type << ", expected element type "
                                          << getType().getElementType() << " as in the result";
    sum += type.getDimSize(dim);
  }
  // (C3)
  if (sum != getType().getDimSize(dim))
    return emitOpError("concatenates ") << sum << " elements along dimension " << dim
                                        << ", expected the result's " << getType().getDimSize(dim);
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules and costs
//===----------------------------------------------------------------------===//

/// All dimensions are parallel except `dim`, which is whole in each tensor and has a different size
/// there.
static ShardingRule ruleAlong(Operation *op, int64_t dim) {
  ShardingRule rule;
  const TensorFactors result = rule.addDims(cast<RankedTensorType>(op->getResult(0).getType()));
  rule.factors[dim].kind = FactorKind::whole;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    TensorFactors &operand = rule.operands.emplace_back(result);
    operand[dim] = {static_cast<int64_t>(rule.factors.size())};
    rule.factors.push_back({"in" + std::to_string(index),
                            cast<RankedTensorType>(type).getDimSize(dim), FactorKind::whole});
  }
  rule.results.push_back(result);
  return rule;
}

ShardingRule SliceOp::getShardingRule() { return ruleAlong(*this, getDim()); }
ShardingRule PadOp::getShardingRule() { return ruleAlong(*this, getDim()); }
ShardingRule ConcatOp::getShardingRule() { return ruleAlong(*this, getDim()); }

// Only elements of the result are read.
Cost SliceOp::getCost() {
  Cost cost = costOf(*this, 0);
  cost.bytesRead = cost.bytesWritten;
  return cost;
}
Cost PadOp::getCost() { return costOf(*this, 0); }
Cost ConcatOp::getCost() { return costOf(*this, 0); }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

Linearity SliceOp::getLinearity() { return Linearity::additive; }
Linearity PadOp::getLinearity() { return Linearity::additive; }
Linearity ConcatOp::getLinearity() { return Linearity::additive; }

PrecisionClass SliceOp::getPrecisionClass() { return PrecisionClass::first; }
PrecisionClass PadOp::getPrecisionClass() { return PrecisionClass::first; }
PrecisionClass ConcatOp::getPrecisionClass() { return PrecisionClass::common; }

/// The number of elements outside `dim`, and the elements from `start` on that `piece` has of
/// `whole`.
static KernelCall partCall(Operation *op, RankedTensorType piece, RankedTensorType whole,
                           int64_t dim, int64_t start) {
  int64_t inner = elementsOf(whole.getShape().drop_front(dim + 1));
  return {op,
          ShapeArgument("Part")
              .field("outer", elementsOf(whole.getShape().take_front(dim)))
              .field("whole", whole.getDimSize(dim) * inner)
              .field("start", start * inner)
              .field("size", piece.getDimSize(dim) * inner),
          KernelElements::any};
}

KernelCall SliceOp::getKernelCall() {
  return partCall(*this, getType(), getInput().getType(), getDim(), getStart());
}
KernelCall PadOp::getKernelCall() {
  return partCall(*this, getInput().getType(), getType(), getDim(), getLow());
}

/// The number of elements outside `dim`, and the elements of each operand in a run of the result.
KernelCall ConcatOp::getKernelCall() {
  int64_t outer = elementsOf(getType().getShape().take_front(getDim()));
  SmallVector<int64_t> sizes;
  for (Value input : getInputs())
    sizes.push_back(cast<RankedTensorType>(input.getType()).getNumElements() /
                    std::max<int64_t>(outer, 1));
  return {*this,
          ShapeArgument("Join<" + std::to_string(sizes.size()) + ">")
              .field("outer", outer)
              .field("sizes", sizes),
          KernelElements::any};
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static bool flowsBack(Value d, bool needed, Value operand) {
  return d && needed && isa<FloatType>(getElementTypeOrSelf(operand.getType()));
}

Cotangents SliceOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d, ArrayRef<bool> needed) {
  Value input;
  if (flowsBack(d[0], needed[0], getInput()))
    input = PadOp::create(builder, getLoc(), getInput().getType(), d[0], getDim(), getStart());
  return SmallVector<Value>{input};
}

Cotangents PadOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d, ArrayRef<bool> needed) {
  Value input;
  if (flowsBack(d[0], needed[0], getInput()))
    input = SliceOp::create(builder, getLoc(), getInput().getType(), d[0], getDim(), getLow());
  return SmallVector<Value>{input};
}

Cotangents ConcatOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d, ArrayRef<bool> needed) {
  SmallVector<Value> parts;
  int64_t start = 0;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    Value &part = parts.emplace_back();
    if (flowsBack(d[0], needed[index], input))
      part = SliceOp::create(builder, getLoc(), input.getType(), d[0], getDim(), start);
    start += cast<RankedTensorType>(input.getType()).getDimSize(getDim());
  }
  return parts;
}
