//===- GenerationOps.cpp - attention to tokens of earlier steps -----------===//

#include "dialect/nn/HeadWidth.h"
#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// `positions` are i32 and (samples, rows).
static LogicalResult verifyPositions(Operation *op, RankedTensorType positions, int64_t samples,
                                     int64_t rows) {
  const int64_t shape[] = {samples, rows};
  if (positions.getShape() == ArrayRef(shape) && positions.getElementType().isInteger(32))
    return success();
  return op->emitOpError("'positions' has type ")
         << positions << ", expected tensor<" << samples << "x" << rows << "xi32>";
}

LogicalResult WriteRowsOp::verify() {
  RankedTensorType table = getTable().getType(), rows = getRows().getType();
  const int64_t dim = getDim();
  // (C1)
  if (dim < 1 || dim >= table.getRank())
    return emitOpError("writes along dimension ")
           << dim << " of " << table << ", expected a dimension after the first";
  SmallVector<int64_t> expected(table.getShape());
  if (rows.getRank() == table.getRank())
    expected[dim] = rows.getDimSize(dim);
  if (rows.getShape() != ArrayRef(expected))
    return emitOpError("'rows' has type ")
           << rows << ", expected the sizes of " << table << " in all dimensions but " << dim;
  // (C2)
  return verifyPositions(*this, getPositions().getType(), table.getDimSize(0),
                         rows.getDimSize(dim));
}

LogicalResult CachedAttentionOp::verify() {
  RankedTensorType q = getQ().getType(), k = getK().getType();
  // (C1)
  if (!isAttentionOrder(getOrder()) || attentionDim(getOrder(), 'n') >= 0)
    return emitOpError("has order '") << getOrder()
                                      << "', expected the letters b, h and t with single spaces "
                                         "between them, then d";
  // (C2)
  if (q.getRank() != 4)
    return emitOpError("'q' has type ")
           << q << ", expected the 4 dimensions '" << getOrder() << "'";
  // (C3)
  const int64_t batch = q.getDimSize(attentionDim(getOrder(), 'b')),
                heads = q.getDimSize(attentionDim(getOrder(), 'h')),
                queries = q.getDimSize(attentionDim(getOrder(), 't')), width = q.getDimSize(3);
  if (k.getRank() != 4 || k.getDimSize(0) != batch || k.getDimSize(3) != width ||
      k.getElementType() != q.getElementType())
    return emitOpError("'k' has type ")
           << k << ", expected (batch, groups, positions, width) with batch " << batch << ", width "
           << width << " and element type " << q.getElementType();
  if (const int64_t groups = k.getDimSize(1); groups == 0 ? heads != 0 : heads % groups != 0)
    return emitOpError("has ") << heads << " heads and " << groups
                               << " groups, expected the groups to divide the heads";
  // (C4)
  if (failed(verifyPositions(*this, getPositions().getType(), batch, queries)))
    return failure();
  // (C5)
  if (queries > k.getDimSize(2))
    return emitOpError("has ") << queries << " queries and " << k.getDimSize(2)
                               << " keys, expected at most as many queries";
  if (getWindow() && *getWindow() <= 0)
    return emitOpError("has a window of ") << *getWindow() << ", expected a positive number";
  if (getSoftcap() && !(getSoftcap()->isFiniteNonZero() && !getSoftcap()->isNegative()))
    return emitOpError("has softcap ")
           << getSoftcap()->convertToDouble() << ", expected a positive number";
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

ShardingRule WriteRowsOp::getShardingRule() {
  ShardingRule rule;
  const TensorFactors table = rule.addDims(getTable().getType());
  const auto rows = static_cast<int64_t>(rule.factors.size());
  rule.factors[getDim()].kind = FactorKind::whole;
  rule.factors.push_back({"row", getRows().getType().getDimSize(getDim()), FactorKind::whole});
  TensorFactors written = table;
  written[getDim()] = {rows};
  rule.operands = {table, written, {{0}, {rows}}};
  rule.results = {table};
  return rule;
}

/// As of `nn.attention`.
ShardingRule CachedAttentionOp::getShardingRule() {
  RankedTensorType q = getQ().getType(), k = getK().getType();
  auto dim = [&](char letter) { return attentionDim(getOrder(), letter); };
  const int64_t groups = k.getDimSize(1);
  ShardingRule rule;
  rule.factors = {{"batch", k.getDimSize(0)},
                  {"group", groups},
                  {"head", groups ? q.getDimSize(dim('h')) / groups : 1},
                  {"query", q.getDimSize(dim('t')), FactorKind::whole},
                  {"key", k.getDimSize(2), FactorKind::whole},
                  {"width", k.getDimSize(3), FactorKind::whole}};
  TensorFactors queries(4), keys = {{0}, {1}, {4}, {5}};
  queries[dim('b')] = {0};
  queries[dim('h')] = {1, 2};
  queries[dim('t')] = {3};
  queries[3] = {5};
  rule.operands = {queries, keys, keys, {{0}, {3}}};
  rule.results = {queries};
  return rule;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool CachedAttentionOp::isContraction() { return true; }

KernelCall WriteRowsOp::getKernelCall() {
  ArrayRef<int64_t> shape = getTable().getType().getShape();
  const auto dim = static_cast<size_t>(getDim());
  return {*this, ShapeArgument("WriteShape")
                     .field("samples", shape[0])
                     .field("outer", elementsOf(shape.take_front(dim).drop_front()))
                     .field("positions", shape[dim])
                     .field("rows", getRows().getType().getDimSize(dim))
                     .field("width", elementsOf(shape.drop_front(dim + 1)))};
}

// Elements that are not replaced keep their place.
InPlacePairs WriteRowsOp::getInPlacePairs() { return {{0, 0}}; }

KernelCall CachedAttentionOp::getKernelCall() {
  ArrayRef<int64_t> keys = getK().getType().getShape();
  ArrayRef<int64_t> shape = getQ().getType().getShape();
  auto dim = [&](char letter) { return static_cast<size_t>(attentionDim(getOrder(), letter)); };
  auto stride = [&](char letter) { return elementsOf(shape.drop_front(dim(letter) + 1)); };
  return {*this, ShapeArgument("CachedAttentionShape")
                     .field("batch", keys[0])
                     .field("heads", shape[dim('h')])
                     .field("groups", keys[1])
                     .field("queries", shape[dim('t')])
                     .field("keys", keys[2])
                     .field("width", keys[3])
                     .single("scale", getScale())
                     .field("window", std::min<int64_t>(getWindow().value_or(0), keys[2]))
                     .single("softcap", getSoftcap().value_or(APFloat(0.0)))
                     .field("q", SmallVector<int64_t, 3>{stride('b'), stride('h'), stride('t')})};
}

LogicalResult CachedAttentionOp::verifyCuda() {
  return verifyHeadWidth(*this, getK().getType().getDimSize(3));
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

// The rows that are read and written; the rest of the table stays.
Cost WriteRowsOp::getCost() {
  const int64_t bytes = countBytes(getRows().getType()).value_or(0);
  return Cost{0, bytes, bytes};
}

// Two products over the width with all keys, since any position may be the last.
Cost CachedAttentionOp::getCost() {
  RankedTensorType k = getK().getType();
  return costOf(*this, getQ().getType().getNumElements() * k.getDimSize(2) * 4);
}
