//===- AttentionOps.cpp - attention and rotary positions ------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyAttention(Operation *op, RankedTensorType q, RankedTensorType k,
                                     RankedTensorType logSumExp, bool causal) {
  // (C1)
  for (auto [type, name, dims] : {std::tuple(q, "'q'", "batch, heads, queries and width"),
                                  std::tuple(k, "'k'", "batch, groups, keys and width")})
    if (type.getRank() != 4)
      return op->emitOpError() << name << " has type " << type << ", expected rank 4: " << dims;
  if (q.getDimSize(0) != k.getDimSize(0) || q.getDimSize(3) != k.getDimSize(3))
    return op->emitOpError("'k' has type ") << k << ", expected batch " << q.getDimSize(0)
                                            << " and width " << q.getDimSize(3) << " as 'q' has";
  // (C2)
  int64_t heads = q.getDimSize(1), groups = k.getDimSize(1);
  if (groups == 0 ? heads != 0 : heads % groups != 0)
    return op->emitOpError("has ") << heads << " heads and " << groups
                                   << " groups, expected the groups to divide the heads";
  // (C3)
  if (logSumExp.getShape() != q.getShape().drop_back())
    return op->emitOpError("'log_sum_exp' has type ")
           << logSumExp << ", expected the shape of the rows of " << q;
  // (C4)
  int64_t queries = q.getDimSize(2), keys = k.getDimSize(2);
  int64_t least = causal ? std::max<int64_t>(queries, 1) : 1;
  if (keys < least)
    return op->emitOpError("has ")
           << keys << " keys for " << queries << " queries, expected at least " << least
           << " so that every query sees one";
  // (C5)
  if (k.getElementType() != q.getElementType())
    return op->emitOpError("has an operand or result of type ")
           << k << ", expected element type " << q.getElementType() << " as 'q' has";
  if (Type sum = getSumType(q.getElementType()); logSumExp.getElementType() != sum)
    return op->emitOpError("'log_sum_exp' has type ")
           << logSumExp << ", expected element type " << sum << " as sums of "
           << q.getElementType() << " have";
  return success();
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, getQ().getType(), getK().getType(), getLogSumExp().getType(),
                         getCausal());
}

LogicalResult AttentionGradOp::verify() {
  return verifyAttention(*this, getQ().getType(), getK().getType(), getLogSumExp().getType(),
                         getCausal());
}

LogicalResult RopeOp::verify() {
  RankedTensorType type = getX().getType();
  // (C1)
  if (type.getRank() < 2)
    return emitOpError("'x' has type ") << type << ", expected positions and a width";
  if (type.getShape().back() % 2 != 0)
    return emitOpError("has width ")
           << type.getShape().back() << ", expected an even number to turn pairs of";
  // (C2)
  double theta = getTheta().convertToDouble();
  if (!(theta > 0))
    return emitOpError("has theta ") << theta << ", expected a positive number";
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

namespace {

/// Batch and groups are parallel; the heads of a group, positions and width stay whole.
struct AttentionFactors {
  ShardingRule rule;
  TensorFactors q, k, rows;

  AttentionFactors(RankedTensorType q, RankedTensorType k) {
    int64_t heads = q.getDimSize(1), groups = k.getDimSize(1);
    rule.factors = {{"batch", q.getDimSize(0), FactorKind::parallel},
                    {"group", groups, FactorKind::parallel},
                    {"head", groups ? heads / groups : 1, FactorKind::whole},
                    {"query", q.getDimSize(2), FactorKind::whole},
                    {"key", k.getDimSize(2), FactorKind::whole},
                    {"width", q.getDimSize(3), FactorKind::whole}};
    this->q = {{0}, {1, 2}, {3}, {5}};
    this->k = {{0}, {1}, {4}, {5}};
    rows = {{0}, {1, 2}, {3}};
  }
};

} // namespace

ShardingRule AttentionOp::getShardingRule() {
  AttentionFactors f(getQ().getType(), getK().getType());
  f.rule.operands = {f.q, f.k, f.k};
  f.rule.results = {f.q, f.rows};
  return f.rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  AttentionFactors f(getQ().getType(), getK().getType());
  f.rule.operands = {f.q, f.k, f.k, f.q, f.rows, f.q};
  f.rule.results = {f.q, f.k, f.k};
  return f.rule;
}

// A position turns by its index, so positions stay whole, as does the width that pairs are made of.
ShardingRule RopeOp::getShardingRule() {
  ShardingRule rule = ShardingRule::elementwise(*this);
  for (Factor &factor : MutableArrayRef<Factor>(rule.factors).take_back(2))
    factor.kind = FactorKind::whole;
  return rule;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Pairs of a query and a key it sees, over all batches and heads.
static int64_t countPairs(RankedTensorType q, RankedTensorType k, bool causal) {
  int64_t queries = q.getDimSize(2), keys = k.getDimSize(2);
  int64_t hidden = causal ? queries * (queries - 1) / 2 : 0;
  return q.getDimSize(0) * q.getDimSize(1) * (queries * keys - hidden);
}

// Two products over the width; scale, maximum, subtraction, exponential and sum per pair.
Cost AttentionOp::getCost() {
  RankedTensorType q = getQ().getType();
  return costOf(*this, countPairs(q, getK().getType(), getCausal()) * (4 * q.getDimSize(3) + 5));
}

// Five products over the width; scale, subtraction, exponential and the two of d_s per pair.
Cost AttentionGradOp::getCost() {
  RankedTensorType q = getQ().getType();
  return costOf(*this, countPairs(q, getK().getType(), getCausal()) * (10 * q.getDimSize(3) + 5));
}

// Two products and a sum per element; sine and cosine are shared by all rows.
Cost RopeOp::getCost() { return costOf(*this, 3 * getX().getType().getNumElements()); }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                           ArrayRef<bool> needed,
                                           SmallVectorImpl<Value> &operandCotangents) {
  if (resultCotangents[1])
    return emitOpError("has no derivative of 'log_sum_exp'; compute it with 'nn.einsum' where the "
                       "loss depends on it");
  if (!resultCotangents[0] || !llvm::is_contained(needed, true)) {
    operandCotangents.append(3, Value());
    return success();
  }
  Type q = getQ().getType(), k = getK().getType();
  auto grad = AttentionGradOp::create(builder, getLoc(), TypeRange{q, k, k}, getQ(), getK(), getV(),
                                      getOut(), getLogSumExp(), resultCotangents[0], getScaleAttr(),
                                      getCausalAttr());
  for (OpResult cotangent : grad->getResults())
    operandCotangents.push_back(needed[cotangent.getResultNumber()] ? cotangent : Value());
  return success();
}

LogicalResult RopeOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> resultCotangents,
                                      ArrayRef<bool> needed,
                                      SmallVectorImpl<Value> &operandCotangents) {
  Value d = resultCotangents[0], x;
  if (d && needed[0])
    x = RopeOp::create(builder, getLoc(), getX().getType(), d, getThetaAttr(),
                       getInverse() ? UnitAttr() : builder.getUnitAttr());
  operandCotangents.push_back(x);
  return success();
}
