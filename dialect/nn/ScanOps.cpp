//===- ScanOps.cpp - cumulative sums --------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/RowMath.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::nn;

/// The names of the dimensions, outermost first.
static SmallVector<StringRef> namesIn(StringRef notation) {
  SmallVector<StringRef> names;
  if (!notation.empty())
    notation.split(names, ' ');
  return names;
}

static bool isName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

int64_t ScanSumOp::getDim() {
  SmallVector<StringRef> names = namesIn(getNotation());
  return llvm::find(names, getAlong()) - names.begin();
}

LogicalResult ScanSumOp::verify() {
  SmallVector<StringRef> names = namesIn(getNotation());
  // (C1)
  if (static_cast<int64_t>(names.size()) != getInput().getType().getRank() ||
      !llvm::all_of(names, isName))
    return emitOpError("has notation '")
           << getNotation() << "' for " << getInput().getType()
           << ", expected a name for each dimension, with single spaces between them";
  // (C2)
  llvm::StringSet<> seen;
  for (StringRef name : names)
    if (!seen.insert(name).second)
      return emitOpError("names two dimensions '") << name << "', expected distinct names";
  // (C3)
  if (!seen.contains(getAlong()))
    return emitOpError("sums along '")
           << getAlong() << "', expected one of the names of '" << getNotation() << "'";
  return success();
}

ShardingRule ScanSumOp::getShardingRule() {
  ShardingRule rule = ShardingRule::elementwise(*this);
  for (auto [factor, name] : llvm::zip_equal(rule.factors, namesIn(getNotation())))
    factor.name = name.str();
  rule.factors[getDim()].kind = FactorKind::combined;
  return rule;
}

Linearity ScanSumOp::getLinearity() { return Linearity::additive; }

Cost ScanSumOp::getCost() { return costOf(*this, getInput().getType().getNumElements()); }

Cotangents ScanSumOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                      ArrayRef<bool> needed) {
  Value input;
  if (d[0] && needed[0])
    input =
        ScanSumOp::create(builder, getLoc(), getType(), getNotationAttr(), getAlongAttr(), d[0],
                          getExclusiveAttr(), getReverse() ? UnitAttr() : builder.getUnitAttr());
  return SmallVector<Value>{input};
}

PrecisionClass ScanSumOp::getPrecisionClass() { return PrecisionClass::first; }

KernelCall ScanSumOp::getKernelCall() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  int64_t dim = getDim();
  return {*this, ShapeArgument("ScanShape")
                     .field("outer", elementsOf(shape.take_front(dim)))
                     .field("size", shape[dim])
                     .field("inner", elementsOf(shape.drop_front(dim + 1)))
                     .field("exclusive", getExclusive())
                     .field("reverse", getReverse())};
}

// An element is read before the sum at its position is written.
InPlacePairs ScanSumOp::getInPlacePairs() { return {{0, 0}}; }

SmallVector<Value> ScanSumOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                         FactorShards &shards) {
  const int64_t dim = getDim();
  RowMath m(builder, getLoc(), cast<RankedTensorType>(operands[0].getType()), dim);
  Value x = m.widened(shards.masked(operands[0], dim, 0));
  Value others = shards.sumOfOthers(m.overRow(Reduction::sum, x), /*behind=*/getReverse());
  Value own = ScanSumOp::create(builder, getLoc(), m.wide, getNotationAttr(), getAlongAttr(), x,
                                getExclusiveAttr(), getReverseAttr());
  return {m.narrowed(shards.masked(m.add(own, m.ofRows(others)), dim, 0), types[0])};
}
