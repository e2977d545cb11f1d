//===- TokenOps.cpp - ops on the tokens of a text -------------------------===//

#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::nn;

LogicalResult PositionsSinceOp::verify() {
  RankedTensorType tokens = getTokens().getType();
  // (C1)
  if (tokens.getRank() == 0)
    return emitOpError("has tokens of type ") << tokens << ", expected a dimension of positions";
  // (C2)
  if (auto expected = tokens.clone(IntegerType::get(getContext(), 32)); getType() != expected)
    return emitOpError("has result type ") << getType() << ", expected " << expected;
  // (C3)
  const auto length = static_cast<int64_t>(getSequence().size());
  if (length < 1 || length > kMaxLength)
    return emitOpError("has a sequence of ")
           << length << " tokens, expected 1 to " << kMaxLength << " of them";
  for (int64_t token : getSequence())
    if (token < 0)
      return emitOpError("has the token ") << token << ", expected none below 0";
  return success();
}

// A sequence may end anywhere before a position.
ShardingRule PositionsSinceOp::getShardingRule() {
  ShardingRule rule = ShardingRule::elementwise(*this);
  rule.factors.back().kind = FactorKind::whole;
  return rule;
}

Cost PositionsSinceOp::getCost() { return costOf(*this, 0); }

KernelCall PositionsSinceOp::getKernelCall() {
  ArrayRef<int64_t> shape = getTokens().getType().getShape();
  return {*this, ShapeArgument("SequenceShape")
                     .field("rows", elementsOf(shape.drop_back()))
                     .field("positions", shape.back())
                     .field("documents", getDocuments())
                     .field("length", static_cast<int64_t>(getSequence().size()))
                     .field("sequence", getSequence())};
}
