//===- EmbeddingOps.cpp - rows of a table ---------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Checks that nn.embedding and its gradient share: `rows` holds one row of `table` per id.
static LogicalResult verifyLookup(Operation *op, RankedTensorType table, StringRef tableName,
                                  RankedTensorType ids, RankedTensorType rows, StringRef rowsName) {
  // (C1)
  if (table.getRank() != 2)
    return op->emitOpError() << tableName << " has type " << table
                             << ", expected rank 2: rows and width";
  // (C2)
  SmallVector<int64_t> shape(ids.getShape());
  shape.push_back(table.getDimSize(1));
  if (rows.getShape() != ArrayRef<int64_t>(shape))
    return op->emitOpError() << rowsName << " has type " << rows << ", expected the shape of "
                             << ids << " followed by the width " << table.getDimSize(1);
  return success();
}

LogicalResult EmbeddingOp::verify() {
  if (failed(verifyLookup(*this, getTable().getType(), "'table'", getIds().getType(), getType(),
                          "'result'")))
    return failure();
  // (C3)
  if (Type element = getTable().getType().getElementType(); getType().getElementType() != element)
    return emitOpError("'result' has element type ")
           << getType().getElementType() << ", expected " << element << " as in the table";
  return success();
}

LogicalResult EmbeddingGradOp::verify() {
  if (failed(verifyLookup(*this, getType(), "'result'", getIds().getType(), getDOut().getType(),
                          "'d_out'")))
    return failure();
  // (C3)
  Type sum = getSumType(getDOut().getType().getElementType());
  if (getType().getElementType() != sum)
    return emitOpError("'result' has element type ")
           << getType().getElementType() << ", expected " << sum << " for sums of 'd_out'";
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules and costs
//===----------------------------------------------------------------------===//

namespace {

/// The factors of a lookup: the dimensions of the ids, the rows of the table, its width.
struct LookupFactors {
  ShardingRule rule;
  TensorFactors ids, table, rows;

  LookupFactors(RankedTensorType table, RankedTensorType ids, FactorKind idKind,
                FactorKind rowKind) {
    const int64_t rank = ids.getRank();
    this->ids = rule.addDims(ids);
    for (Factor &factor : rule.factors)
      factor.kind = idKind;
    rule.factors.push_back(
        {"row", table.getDimSize(0), rowKind, /*indexed=*/rowKind != FactorKind::whole});
    rule.factors.push_back({"width", table.getDimSize(1), FactorKind::parallel});
    this->table = {{rank}, {rank + 1}};
    rows = this->ids;
    rows.push_back({rank + 1});
  }
};

} // namespace

ShardingRule EmbeddingOp::getShardingRule() {
  LookupFactors f(getTable().getType(), getIds().getType(), FactorKind::parallel,
                  getPartial() ? FactorKind::whole : FactorKind::sumReduction);
  f.rule.operands = {f.table, f.ids};
  f.rule.results = {f.rows};
  return f.rule;
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  LookupFactors f(getType(), getIds().getType(), FactorKind::sumReduction,
                  getPartial() ? FactorKind::whole : FactorKind::parallel);
  f.rule.operands = {f.ids, f.rows};
  f.rule.results = {f.table};
  f.rule.annihilator = 1;
  return f.rule;
}

// Of the table only the rows that are looked up are read.
Cost EmbeddingOp::getCost() {
  Cost cost = costOf(*this, 0);
  cost.bytesRead = bytesOf(getIds().getType()) + cost.bytesWritten;
  return cost;
}

Cost EmbeddingGradOp::getCost() { return costOf(*this, getDOut().getType().getNumElements()); }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

PrecisionClass EmbeddingOp::getPrecisionClass() { return PrecisionClass::first; }

static KernelCall lookupCall(Operation *op, RankedTensorType table, RankedTensorType ids,
                             bool partial) {
  ShapeArgument shape("EmbeddingShape");
  shape.field("ids", ids.getNumElements())
      .field("vocabulary", table.getDimSize(0))
      .field("width", table.getDimSize(1));
  if (partial)
    shape.field("partial", true);
  return {op, std::move(shape)};
}

KernelCall EmbeddingOp::getKernelCall() {
  return lookupCall(*this, getTable().getType(), getIds().getType(), getPartial());
}
KernelCall EmbeddingGradOp::getKernelCall() {
  return lookupCall(*this, getType(), getIds().getType(), getPartial());
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Cotangents EmbeddingOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                        ArrayRef<bool> needed) {
  Value table;
  if (d[0] && needed[0]) {
    RankedTensorType type = getTable().getType();
    table = EmbeddingGradOp::create(builder, getLoc(), cast<RankedTensorType>(getSumType(type)),
                                    getIds(), d[0]);
    table = narrowTo(builder, table, type.getElementType());
  }
  return SmallVector<Value>{table, Value()};
}

//===----------------------------------------------------------------------===//
// Parts of a table
//===----------------------------------------------------------------------===//

SmallVector<Value> EmbeddingOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                           FactorShards &shards) {
  return {EmbeddingOp::create(builder, getLoc(), types[0], operands[0],
                              shards.renumber(operands[1]),
                              /*partial=*/true)};
}

SmallVector<Value> EmbeddingGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                               TypeRange types, FactorShards &shards) {
  return {EmbeddingGradOp::create(builder, getLoc(), types[0], shards.renumber(operands[0]),
                                  operands[1],
                                  /*partial=*/true)};
}
