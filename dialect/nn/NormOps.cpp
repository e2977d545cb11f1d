//===- NormOps.cpp - softmax and normalization of rows --------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "dialect/nn/RowMath.h"
#include "dialect/nn/Rows.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The last dimension of `x` is a row, `scale` has its shape, `statistic` that of the rows.
template <typename Op>
static LogicalResult verifyNorm(Op op, Value statisticValue, StringRef statisticName) {
  const RankedTensorType x = op.getX().getType(), scale = op.getScale().getType(),
                         statistic = cast<RankedTensorType>(statisticValue.getType());
  // (C1)
  if (failed(verifyHasRows(op, x, "'x'")))
    return failure();
  // (C2)
  if (scale.getShape() != x.getShape().take_back())
    return op.emitOpError("'scale' has type ") << scale << ", expected the shape of a row of " << x;
  // (C3)
  if (failed(verifyRows(op, x, statistic, statisticName)))
    return failure();
  // (C4)
  if (scale.getElementType() != x.getElementType())
    return op.emitOpError("has an operand or result of type ")
           << scale << ", expected element type " << x.getElementType() << " as in 'x'";
  if (statistic.getElementType() != getSumType(x.getElementType()))
    return op.emitOpError() << statisticName << " has type " << statistic
                            << ", expected element type " << getSumType(x.getElementType())
                            << " for sums of " << x.getElementType();
  return success();
}

/// (C5) and (C6) of gradients.
template <typename Op> static LogicalResult verifyJoined(Op op) {
  const Type x = op.getX().getType(), sum = op.getDScale().getType();
  Value residual = op.getResidual(), sums = op.getSums();
  if (residual && residual.getType() != x)
    return op.emitOpError("'residual' has type ")
           << residual.getType() << ", expected " << x << " as 'x'";
  if (sums && !residual)
    return op.emitOpError(
        "has 'sums' without a 'residual'; add up the rows of 'd_x' by 'nn.reduce'");
  if (sums && sums.getType() != sum)
    return op.emitOpError("'sums' has type ")
           << sums.getType() << ", expected " << sum << " as 'd_scale'";
  return success();
}

/// (C5)
static LogicalResult verifyEps(Operation *op, const APFloat &eps) {
  double value = eps.convertToDouble();
  if (value > 0)
    return success();
  return op->emitOpError("has eps ") << value << ", expected a positive number";
}

LogicalResult SoftmaxOp::verify() { return verifyHasRows(*this, getX().getType(), "'x'"); }

LogicalResult LayerNormOp::verify() {
  return failure(failed(verifyNorm(*this, getMean(), "'mean'")) ||
                 failed(verifyEps(*this, getEps())));
}

LogicalResult LayerNormGradOp::verify() {
  return failure(failed(verifyNorm(*this, getMean(), "'mean'")) || failed(verifyJoined(*this)));
}

LogicalResult RmsNormOp::verify() {
  return failure(failed(verifyNorm(*this, getRstd(), "'rstd'")) ||
                 failed(verifyEps(*this, getEps())));
}

LogicalResult RmsNormGradOp::verify() {
  return failure(failed(verifyNorm(*this, getRstd(), "'rstd'")) || failed(verifyJoined(*this)));
}

//===----------------------------------------------------------------------===//
// Sharding rules
//===----------------------------------------------------------------------===//

namespace {

/// The factors of tensors with rows: one per dimension of the rows, and the row, which is combined
/// where it is split.
struct RowFactors {
  ShardingRule rule;
  /// Factors of `x` and tensors of its shape, of a statistic of each row, and of a vector as long
  /// as a row.
  TensorFactors whole, rows, row;

  RowFactors(RankedTensorType x, FactorKind rowsKind) : whole(rule.addDims(x)) {
    rows.assign(whole.begin(), std::prev(whole.end()));
    row = {whole.back()};
    for (Factor &factor : rule.factors)
      factor.kind = rowsKind;
    rule.factors.back().name = "row";
    rule.factors.back().kind = FactorKind::combined;
  }
};

/// Results of a gradient are zero where operand `cotangent` is, without a residual.
template <typename Op> ShardingRule withResidual(Op op, RowFactors &f, int64_t cotangent) {
  if (op.getResidual())
    f.rule.operands.push_back(f.whole);
  else
    f.rule.annihilator = cotangent;
  if (op.getSums())
    f.rule.results.push_back(f.row);
  return f.rule;
}

} // namespace

ShardingRule SoftmaxOp::getShardingRule() {
  RowFactors f(getX().getType(), FactorKind::parallel);
  f.rule.operands = {f.whole};
  f.rule.results = {f.whole};
  return f.rule;
}

ShardingRule LayerNormOp::getShardingRule() {
  RowFactors f(getX().getType(), FactorKind::parallel);
  f.rule.operands = {f.whole, f.row, f.row};
  f.rule.results = {f.whole, f.rows, f.rows};
  return f.rule;
}

ShardingRule LayerNormGradOp::getShardingRule() {
  RowFactors f(getX().getType(), FactorKind::sumReduction);
  f.rule.operands = {f.whole, f.row, f.rows, f.rows, f.whole};
  f.rule.results = {f.whole, f.row, f.row};
  return withResidual(*this, f, 4);
}

ShardingRule RmsNormOp::getShardingRule() {
  RowFactors f(getX().getType(), FactorKind::parallel);
  f.rule.operands = {f.whole, f.row};
  f.rule.results = {f.whole, f.rows};
  return f.rule;
}

ShardingRule RmsNormGradOp::getShardingRule() {
  RowFactors f(getX().getType(), FactorKind::sumReduction);
  f.rule.operands = {f.whole, f.row, f.rows, f.whole};
  f.rule.results = {f.whole, f.row};
  return withResidual(*this, f, 3);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

PrecisionClass SoftmaxOp::getPrecisionClass() { return PrecisionClass::first; }
PrecisionClass LayerNormOp::getPrecisionClass() { return PrecisionClass::first; }
PrecisionClass RmsNormOp::getPrecisionClass() { return PrecisionClass::first; }

static KernelCall callOnRows(Operation *op, RankedTensorType x, const APFloat &epsilon) {
  ArrayRef<int64_t> shape = x.getShape();
  return {op, ShapeArgument("NormRows")
                  .field("rows", elementsOf(shape.drop_back()))
                  .field("width", shape.back())
                  .number("epsilon", epsilon)};
}

KernelCall SoftmaxOp::getKernelCall() {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  return {*this, ShapeArgument("SoftmaxRows")
                     .field("rows", elementsOf(shape.drop_back()))
                     .field("width", shape.back())};
}
KernelCall LayerNormOp::getKernelCall() { return callOnRows(*this, getX().getType(), getEps()); }
KernelCall RmsNormOp::getKernelCall() { return callOnRows(*this, getX().getType(), getEps()); }
// A gradient does not use the epsilon that was added to the variance.
KernelCall LayerNormGradOp::getKernelCall() {
  return callOnRows(*this, getX().getType(), APFloat(0.0));
}
KernelCall RmsNormGradOp::getKernelCall() {
  return callOnRows(*this, getX().getType(), APFloat(0.0));
}

// A row is read before it is written, so `d_x` may overwrite `x`, `d_y` or `residual`.
InPlacePairs SoftmaxOp::getInPlacePairs() { return {{0, 0}}; }
InPlacePairs LayerNormOp::getInPlacePairs() { return {{0, 0}}; }
InPlacePairs RmsNormOp::getInPlacePairs() { return {{0, 0}}; }
InPlacePairs LayerNormGradOp::getInPlacePairs() { return {{0, 0}, {4, 0}, {5, 0}}; }
InPlacePairs RmsNormGradOp::getInPlacePairs() { return {{0, 0}, {3, 0}, {4, 0}}; }

//===----------------------------------------------------------------------===//
// Residuals
//===----------------------------------------------------------------------===//

template <typename Op>
static Operation *withAdded(Op op, OpBuilder &builder, Value added, bool sums) {
  SmallVector<Value> operands(op->getOperands());
  operands.push_back(added);
  SmallVector<Type> types(op->getResultTypes());
  if (sums)
    types.push_back(op.getRowSumType());
  return Op::create(builder, op.getLoc(), TypeRange(types), operands);
}

Operation *LayerNormGradOp::createWith(OpBuilder &builder, Value added, bool sums) {
  return withAdded(*this, builder, added, sums);
}
Operation *RmsNormGradOp::createWith(OpBuilder &builder, Value added, bool sums) {
  return withAdded(*this, builder, added, sums);
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

// Maximum, subtraction, exponential, sum and product per element.
Cost SoftmaxOp::getCost() { return costOf(*this, 5 * getX().getType().getNumElements()); }

// Two sums, a square and the four operations of the result per element.
Cost LayerNormOp::getCost() { return costOf(*this, 7 * getX().getType().getNumElements()); }

/// Operations per element for a residual and for sums.
template <typename Op> static int64_t joinedOperations(Op op) {
  return (op.getResidual() ? 1 : 0) + (op.getSums() ? 1 : 0);
}

// n is two operations, g one, the two means three, d_x five, the two sums three.
Cost LayerNormGradOp::getCost() {
  return costOf(*this, (14 + joinedOperations(*this)) * getX().getType().getNumElements());
}

// A square, a sum and the two products of the result per element.
Cost RmsNormOp::getCost() { return costOf(*this, 4 * getX().getType().getNumElements()); }

// n and g are one operation each, the mean two, d_x three, the sum two.
Cost RmsNormGradOp::getCost() {
  return costOf(*this, (9 + joinedOperations(*this)) * getX().getType().getNumElements());
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

// d_x = y * (d_y - sum(d_y * y)), the sum over the row.
Cotangents SoftmaxOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                      ArrayRef<bool> needed) {
  if (!d[0] || !needed[0])
    return SmallVector<Value>{Value()};
  RowMath m = RowMath::alongLast(builder, getLoc(), getX());
  RankedTensorType type = getX().getType();
  Value sum = m.narrowed(m.overRow(Reduction::sum, m.mul(d[0], getY())), type);
  Value shift = RepeatOp::create(builder, getLoc(), type, RowMath::einops(m.rows, m.whole), sum);
  return SmallVector<Value>{m.mul(getY(), m.sub(d[0], shift))};
}

/// `cotangents`, of which only those of needed operands count, with elements of `element`.
static SmallVector<Value> narrowNeeded(OpBuilder &builder, ArrayRef<Value> cotangents, Type element,
                                       ArrayRef<bool> needed) {
  return llvm::map_to_vector(llvm::zip_equal(cotangents, needed), [&](auto pair) {
    auto [cotangent, wanted] = pair;
    return wanted ? narrowTo(builder, cotangent, element) : Value();
  });
}

Cotangents LayerNormOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                        ArrayRef<bool> needed) {
  if (d[1] || d[2])
    return emitOpError(
        "has no derivative of 'mean' and 'rstd'; compute them with 'nn.reduce' where "
        "the loss depends on them");
  if (!d[0] || !llvm::is_contained(needed, true))
    return SmallVector<Value>(3);
  Type x = getX().getType(), scale = getSumType(getScale().getType());
  auto grad = LayerNormGradOp::create(builder, getLoc(), TypeRange{x, scale, scale}, getX(),
                                      getScale(), getMean(), getRstd(), d[0],
                                      /*residual=*/Value());
  return narrowNeeded(builder, {grad.getDX(), grad.getDScale(), grad.getDBias()},
                      getElementTypeOrSelf(x), needed);
}

Cotangents RmsNormOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                      ArrayRef<bool> needed) {
  if (d[1])
    return emitOpError("has no derivative of 'rstd'; compute it with 'nn.reduce' where the loss "
                       "depends on it");
  if (!d[0] || !llvm::is_contained(needed, true))
    return SmallVector<Value>(2);
  auto grad = RmsNormGradOp::create(builder, getLoc(),
                                    TypeRange{getX().getType(), getSumType(getScale().getType())},
                                    getX(), getScale(), getRstd(), d[0],
                                    /*residual=*/Value());
  return narrowNeeded(builder, {grad.getDX(), grad.getDScale()}, getX().getType().getElementType(),
                      needed);
}

//===----------------------------------------------------------------------===//
// Parts of rows
//===----------------------------------------------------------------------===//

SmallVector<Value> SoftmaxOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                         FactorShards &shards) {
  RowMath m = RowMath::alongLast(builder, getLoc(), operands[0]);
  Value part = shards.masked(operands[0], m.last(), -std::numeric_limits<double>::infinity());
  if (!shards.isShared())
    return {SoftmaxOp::create(builder, getLoc(), types[0], part)};
  Value x = m.widened(part);
  Value top = shards.allReduce(m.overRow(Reduction::max, x), Reduction::max);
  Value power = math::ExpOp::create(builder, getLoc(), m.sub(x, m.ofRows(top)));
  return {m.narrowed(m.div(power, m.ofRows(m.sum(power, shards))), types[0])};
}

// The variance is that of the deviations from the mean, as of a whole row: sums of squares would
// cancel.
SmallVector<Value> LayerNormOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                           FactorShards &shards) {
  RowMath m = RowMath::alongLast(builder, getLoc(), operands[0]);
  Value x = m.widened(shards.masked(operands[0], m.last(), 0));
  Value scale = m.widened(shards.masked(operands[1], 0, 0)),
        bias = m.widened(shards.masked(operands[2], 0, 0));
  Value mean = m.mean(x, shards);
  Value deviation = shards.masked(m.sub(x, m.ofRows(mean)), m.last(), 0);
  Value rstd = m.rstd(m.mean(m.mul(deviation, deviation), shards), getEps());
  Value normal = m.mul(deviation, m.ofRows(rstd));
  Value y = m.add(m.mul(normal, m.ofRow(scale)), m.ofRow(bias));
  return {m.narrowed(y, types[0]), mean, rstd};
}

/// The results of a gradient, of which the first is not rounded yet: with the residual, if there is
/// one, and with sums, if `types` has one more.
static SmallVector<Value> joined(const RowMath &m, SmallVector<Value> results, ValueRange residual,
                                 TypeRange types) {
  if (!residual.empty())
    results[0] = m.add(results[0], m.widened(residual[0]));
  if (types.size() > results.size())
    results.push_back(m.overRows(results[0]));
  results[0] = m.narrowed(results[0], types[0]);
  return results;
}

SmallVector<Value> LayerNormGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                               TypeRange types, FactorShards &shards) {
  RowMath m = RowMath::alongLast(builder, getLoc(), operands[0]);
  Value x = m.widened(shards.masked(operands[0], m.last(), 0));
  Value scale = m.widened(shards.masked(operands[1], 0, 0));
  Value mean = operands[2], rstd = m.ofRows(operands[3]);
  Value d = m.widened(shards.masked(operands[4], m.last(), 0));
  Value normal = m.mul(m.sub(x, m.ofRows(mean)), rstd);
  Value g = m.mul(d, m.ofRow(scale)), product = m.mul(g, normal);
  Value rest = m.sub(m.sub(g, m.ofRows(m.mean(g, shards))),
                     m.mul(normal, m.ofRows(m.mean(product, shards))));
  Value dX = shards.masked(m.mul(rstd, rest), m.last(), 0);
  SmallVector<Value> results = {dX, m.overRows(m.mul(d, normal)), m.overRows(d)};
  return joined(m, std::move(results), operands.drop_front(5), types);
}

SmallVector<Value> RmsNormOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                         FactorShards &shards) {
  RowMath m = RowMath::alongLast(builder, getLoc(), operands[0]);
  Value x = m.widened(shards.masked(operands[0], m.last(), 0));
  Value scale = m.widened(shards.masked(operands[1], 0, 0));
  Value rstd = m.rstd(m.mean(m.mul(x, x), shards), getEps());
  Value y = m.mul(m.mul(x, m.ofRows(rstd)), m.ofRow(scale));
  return {m.narrowed(y, types[0]), rstd};
}

SmallVector<Value> RmsNormGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                             TypeRange types, FactorShards &shards) {
  RowMath m = RowMath::alongLast(builder, getLoc(), operands[0]);
  Value x = m.widened(shards.masked(operands[0], m.last(), 0));
  Value scale = m.widened(shards.masked(operands[1], 0, 0));
  Value rstd = m.ofRows(operands[2]);
  Value d = m.widened(shards.masked(operands[3], m.last(), 0));
  Value normal = m.mul(x, rstd), g = m.mul(d, m.ofRow(scale));
  Value dX = m.mul(rstd, m.sub(g, m.mul(normal, m.ofRows(m.mean(m.mul(g, normal), shards)))));
  return joined(m, {dX, m.overRows(m.mul(d, normal))}, operands.drop_front(4), types);
}
