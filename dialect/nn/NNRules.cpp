//===- NNRules.cpp - rules, costs and kernels of structured and row ops ---===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "dialect/nn/RowMath.h"
#include "dialect/nn/Rows.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

/// One factor per name; names that the result lacks are of kind `reduced`.
static ShardingRule ruleOf(const Notation &pattern, const llvm::StringMap<int64_t> &sizes,
                           FactorKind reduced) {
  ShardingRule rule;
  for (const std::string &name : pattern.names())
    rule.factors.push_back({name, sizes.lookup(name), reduced});
  auto factorsOf = [&](const NotationTensor &tensor) {
    TensorFactors dims;
    for (const NotationDim &dim : tensor) {
      dims.emplace_back();
      for (const std::string &name : dim)
        dims.back().push_back(rule.lookup(name));
    }
    return dims;
  };
  for (const NotationTensor &operand : pattern.operands)
    rule.operands.push_back(factorsOf(operand));
  rule.results.push_back(factorsOf(pattern.result));
  for (const DimFactors &dim : rule.results.front())
    for (int64_t factor : dim)
      rule.factors[factor].kind = FactorKind::parallel;
  return rule;
}

ShardingRule EinsumOp::getShardingRule() {
  return ruleOf(getPattern(), getNameSizes(), FactorKind::sumReduction);
}

ShardingRule RearrangeOp::getShardingRule() {
  return ruleOf(getPattern(), getNameSizes(), FactorKind::parallel);
}

ShardingRule RepeatOp::getShardingRule() {
  return ruleOf(getPattern(), getNameSizes(), FactorKind::parallel);
}

ShardingRule ReduceOp::getShardingRule() {
  return ruleOf(getPattern(), getNameSizes(),
                getKind() == Reduction::max ? FactorKind::maxReduction : FactorKind::sumReduction);
}

ShardingRule mlir::nn::rowRule(Operation *op, RankedTensorType whole, FactorKind last) {
  ShardingRule rule;
  const TensorFactors all = rule.addDims(whole);
  rule.factors.back().kind = last;
  auto factorsOf = [&](Type type) {
    return TensorFactors(ArrayRef(all).take_front(cast<RankedTensorType>(type).getRank()));
  };
  for (Type type : op->getOperandTypes())
    rule.operands.push_back(factorsOf(type));
  for (Type type : op->getResultTypes())
    rule.results.push_back(factorsOf(type));
  return rule;
}

/// The same where labels number the classes.
static ShardingRule classRule(Operation *op, RankedTensorType logits, FactorKind classes) {
  ShardingRule rule = rowRule(op, logits, classes);
  rule.factors.back().indexed = true;
  return rule;
}

ShardingRule CrossEntropyOp::getShardingRule() {
  return classRule(*this, getLogits().getType(), FactorKind::combined);
}
ShardingRule CrossEntropyGradOp::getShardingRule() {
  RankedTensorType logits = getLogits().getType();
  return getCount() ? rowRule(*this, logits, FactorKind::whole)
                    : classRule(*this, logits, FactorKind::parallel);
}
ShardingRule PartialCrossEntropyOp::getShardingRule() {
  return rowRule(*this, getLogits().getType(), FactorKind::whole);
}
ShardingRule ArgmaxOp::getShardingRule() {
  return rowRule(*this, getInput().getType(), FactorKind::combined);
}

Linearity EinsumOp::getLinearity() { return Linearity::product; }
Linearity RearrangeOp::getLinearity() { return Linearity::additive; }
Linearity RepeatOp::getLinearity() { return Linearity::linearMap; }
Linearity ReduceOp::getLinearity() {
  return getKind() == Reduction::max ? Linearity::homogeneous : Linearity::linearMap;
}

void RearrangeOp::setLocalSizes(const ShardingRule &rule, ArrayRef<int64_t> parts) {
  DictionaryAttr sizes = getSizesAttr();
  if (!sizes)
    return;
  SmallVector<NamedAttribute> local;
  for (NamedAttribute entry : sizes) {
    auto size = cast<IntegerAttr>(entry.getValue());
    int64_t part = llvm::divideCeil(size.getInt(), parts[rule.lookup(entry.getName())]);
    local.emplace_back(entry.getName(), IntegerAttr::get(size.getType(), part));
  }
  setSizesAttr(DictionaryAttr::get(getContext(), local));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

PrecisionClass EinsumOp::getPrecisionClass() { return PrecisionClass::narrow; }
/// A product of elements alone is cheap.
bool EinsumOp::isContraction() {
  return llvm::any_of(getShardingRule().factors,
                      [](const Factor &factor) { return factor.kind == FactorKind::sumReduction; });
}
PrecisionClass RearrangeOp::getPrecisionClass() { return PrecisionClass::first; }
PrecisionClass RepeatOp::getPrecisionClass() { return PrecisionClass::first; }
PrecisionClass ReduceOp::getPrecisionClass() {
  return getKind() == Reduction::max ? PrecisionClass::first : PrecisionClass::any;
}
PrecisionClass CrossEntropyOp::getPrecisionClass() { return PrecisionClass::any; }
PrecisionClass PartialCrossEntropyOp::getPrecisionClass() { return PrecisionClass::any; }
PrecisionClass ArgmaxOp::getPrecisionClass() { return PrecisionClass::any; }

bool RepeatOp::isCheap() { return true; }

static KernelCall callOnLogits(Operation *op, RankedTensorType logits) {
  ArrayRef<int64_t> shape = logits.getShape();
  return {op, ShapeArgument("LogitRows")
                  .field("rows", elementsOf(shape.drop_back()))
                  .field("classes", shape.back())};
}

KernelCall CrossEntropyOp::getKernelCall() {
  KernelCall call = callOnLogits(*this, getLogits().getType());
  if (!getGradient())
    call.optionalResults = 1; // only gradients need the sums
  return call;
}

KernelCall PartialCrossEntropyOp::getKernelCall() {
  return callOnLogits(*this, getLogits().getType());
}

KernelCall CrossEntropyGradOp::getKernelCall() {
  KernelCall call = callOnLogits(*this, getLogits().getType());
  call.hasLoops = true;
  return call;
}

// A row is read before its gradient is written.
InPlacePairs CrossEntropyOp::getInPlacePairs() { return {{0, 2}}; }
InPlacePairs PartialCrossEntropyOp::getInPlacePairs() { return {{0, 3}}; }
InPlacePairs CrossEntropyGradOp::getInPlacePairs() { return {{0, 0}}; }

int64_t CrossEntropyOp::getIndexBound(unsigned operand) {
  return operand == 1 ? getLogits().getType().getShape().back() : 0;
}

bool CrossEntropyOp::readsLogits(unsigned operand) { return operand == 0; }
bool PartialCrossEntropyOp::readsLogits(unsigned operand) { return operand == 0; }
bool CrossEntropyGradOp::readsLogits(unsigned operand) { return operand == 0; }

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

Cost EinsumOp::getCost() {
  // Every name is one of an operand.
  const Notation pattern = getPattern();
  const NotationTensor &left = pattern.operands[0];
  int64_t space = getLhs().getType().getNumElements();
  for (auto [dim, size] : llvm::zip_equal(pattern.operands[1], getRhs().getType().getShape()))
    if (!llvm::is_contained(left, dim))
      space *= size;
  return costOf(*this, 2 * space);
}

Cost RearrangeOp::getCost() { return costOf(*this, 0); }
Cost RepeatOp::getCost() { return costOf(*this, 0); }

Cost ReduceOp::getCost() {
  int64_t flops = getInput().getType().getNumElements();
  if (getKind() == Reduction::mean)
    flops += getType().getNumElements();
  return costOf(*this, flops);
}

// Subtraction, exponential and product per logit; the one-hot's subtraction per row.
static int64_t gradientFlops(RankedTensorType logits, RankedTensorType rows) {
  return 3 * logits.getNumElements() + rows.getNumElements();
}

// Maximum, subtraction, exponential and sum per logit; logarithm, addition and subtraction per row.
Cost CrossEntropyOp::getCost() {
  RankedTensorType logits = getLogits().getType(), rows = getLoss().getType();
  return costOf(*this, 4 * logits.getNumElements() + 3 * rows.getNumElements() +
                           (getGradient() ? gradientFlops(logits, rows) : 0));
}

// Maximum, subtraction, exponential and sum per logit; with a gradient logarithm and addition per
// row.
Cost PartialCrossEntropyOp::getCost() {
  RankedTensorType logits = getLogits().getType(), rows = getSum().getType();
  return costOf(*this,
                4 * logits.getNumElements() +
                    (getGradient() ? gradientFlops(logits, rows) + 2 * rows.getNumElements() : 0));
}

Cost CrossEntropyGradOp::getCost() {
  return costOf(*this, gradientFlops(getLogits().getType(), getDLoss().getType()));
}

Cost ArgmaxOp::getCost() { return costOf(*this, getInput().getType().getNumElements()); }

// The flops of the ops inside; only operands and results touch memory.
Cost FusedOp::getCost() {
  int64_t flops = 0;
  for (Operation &op : getBody().front())
    if (auto inner = dyn_cast<CostOpInterface>(op))
      flops += inner.getCost().flops;
  return costOf(*this, flops);
}

//===----------------------------------------------------------------------===//
// Parts of classes and rows
//===----------------------------------------------------------------------===//

// The description of nn.partial_cross_entropy has the formulas.
SmallVector<Value> CrossEntropyOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                              TypeRange types, FactorShards &shards) {
  Location loc = getLoc();
  Value labels = shards.renumber(operands[1]), count = shards.count();
  auto part = PartialCrossEntropyOp::create(builder, loc, TypeRange{types[0], types[0], types[0]},
                                            ValueRange{operands[0], labels, count});
  Value top = shards.allReduce(part.getMax(), Reduction::max);
  Value shift = arith::SubFOp::create(builder, loc, part.getMax(), top);
  Value scale = math::ExpOp::create(builder, loc, shift);
  Value scaled = arith::MulFOp::create(builder, loc, part.getSum(), scale);
  Value sum = shards.allReduce(scaled, Reduction::sum);
  Value picked = shards.allReduce(part.getPicked(), Reduction::sum);
  Value logSum = math::LogOp::create(builder, loc, sum);
  Value logSumExp = arith::AddFOp::create(builder, loc, logSum, top);
  SmallVector<Value> results = {arith::SubFOp::create(builder, loc, logSumExp, picked), logSumExp};
  if (getGradient())
    results.push_back(CrossEntropyGradOp::create(builder, loc, types[2], operands[0], labels,
                                                 logSumExp, operands[2], count));
  return results;
}

//===----------------------------------------------------------------------===//
// Losses with gradients
//===----------------------------------------------------------------------===//

template <typename Op> static Operation *withGradient(Op op, OpBuilder &builder, Value upstream) {
  SmallVector<Value> operands(op->getOperands());
  operands.push_back(upstream);
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(op.getLogits().getType());
  return Op::create(builder, op.getLoc(), TypeRange(types), operands);
}

Value CrossEntropyOp::getClasses() { return {}; }
Value PartialCrossEntropyOp::getClasses() { return getCount(); }

bool CrossEntropyOp::isLogSumExp(Value value) { return value == getLogSumExp(); }

// As CrossEntropyOp::buildSplit writes it, where the maximum of all ranks is this one's.
bool PartialCrossEntropyOp::isLogSumExp(Value value) {
  auto whole = value.getDefiningOp<arith::AddFOp>();
  auto log = whole ? whole.getLhs().getDefiningOp<math::LogOp>() : math::LogOp();
  if (!log || whole.getRhs() != getMax())
    return false;
  auto scaled = log.getOperand().getDefiningOp<arith::MulFOp>();
  auto scale = scaled ? scaled.getRhs().getDefiningOp<math::ExpOp>() : math::ExpOp();
  auto shift = scale ? scale.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  return shift && scaled.getLhs() == getSum() && shift.getLhs() == getMax() &&
         shift.getRhs() == getMax();
}

Operation *CrossEntropyOp::createWith(OpBuilder &builder, Value upstream) {
  return withGradient(*this, builder, upstream);
}
Operation *PartialCrossEntropyOp::createWith(OpBuilder &builder, Value upstream) {
  return withGradient(*this, builder, upstream);
}

SmallVector<Value> CrossEntropyGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                                  TypeRange types, FactorShards &shards) {
  Value labels = shards.renumber(operands[1]), count = shards.count();
  return {CrossEntropyGradOp::create(builder, getLoc(), types[0], operands[0], labels, operands[2],
                                     operands[3], count)};
}

// Of the ranks with the largest maximum, the one with the smallest index is chosen: negated indices
// are maximized.
SmallVector<Value> ArgmaxOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                        FactorShards &shards) {
  Location loc = getLoc();
  RowMath m = RowMath::alongLast(builder, loc, operands[0]);
  Value x = shards.masked(operands[0], m.last(), -std::numeric_limits<double>::infinity());
  if (!shards.isShared())
    return {ArgmaxOp::create(builder, loc, types[0], x)};
  Value own = m.overRow(Reduction::max, m.widened(x));
  Value top = shards.allReduce(own, Reduction::max);
  auto type = cast<RankedTensorType>(types[0]);
  Value first = shards.offset();
  if (!type.getElementType().isInteger(64))
    first = arith::TruncIOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()),
                                    first);
  if (type.getRank() != 0)
    first = RepeatOp::create(builder, loc, type, RowMath::einops({}, m.rows), first);
  Value index = arith::AddIOp::create(builder, loc, ArgmaxOp::create(builder, loc, type, x), first);
  Value turned = arith::SubIOp::create(builder, loc, createSplat(builder, loc, type, 0), index);
  Value isLess = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, own, top);
  Value none = createSplat(builder, loc, type, static_cast<double>(-shards.getSize()));
  Value candidate = arith::SelectOp::create(builder, loc, isLess, none, turned);
  Value best = shards.allReduce(candidate, Reduction::max);
  return {arith::SubIOp::create(builder, loc, createSplat(builder, loc, type, 0), best)};
}
