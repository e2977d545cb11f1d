//===- SplitRows.cpp - ops that work along a dimension, on a part of it ----===//
//
// Ops on rows that are split over ranks: each rank computes a maximum or a sum of its part, these
// are combined over ranks, and the rest is elementwise. Numbers of a row have the type of sums.
// Padding that may not be 0 is masked before reductions and in results.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;

namespace {

/// Arithmetic on tensors with the names d0, d1, ... of which `along` is the dimension that ranks
/// share.
struct RowMath {
  OpBuilder &builder;
  Location loc;
  /// Types of a whole tensor on this rank, of one number per row, and of one row, all in the type
  /// of sums.
  RankedTensorType wide, rowsType, rowType;
  NotationTensor whole, rows, row;

  RowMath(OpBuilder &builder, Location loc, RankedTensorType type, int64_t along)
      : builder(builder), loc(loc), wide(cast<RankedTensorType>(getSumType(type))) {
    SmallVector<int64_t> shape;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      NotationDim name{"d" + std::to_string(dim)};
      whole.push_back(name);
      (dim == along ? row : rows).push_back(name);
      if (dim != along)
        shape.push_back(type.getDimSize(dim));
    }
    rowsType = wide.clone(shape);
    rowType = wide.clone({type.getDimSize(along)});
  }
  static RowMath alongLast(OpBuilder &builder, Location loc, Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    return RowMath(builder, loc, type, type.getRank() - 1);
  }
  int64_t last() const { return wide.getRank() - 1; }

  static std::string einops(const NotationTensor &from, const NotationTensor &to) {
    Notation notation;
    notation.operands.push_back(from);
    notation.result = to;
    return notation.printEinops();
  }

  Value constant(RankedTensorType type, double value) const {
    auto element = builder.getFloatAttr(type.getElementType(), value).getValue();
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, element));
  }
  Value integer(RankedTensorType type, int64_t value) const {
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type,
                               builder.getIntegerAttr(type.getElementType(), value).getValue()));
  }
  Value widened(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() == wide.getElementType())
      return value;
    return arith::ExtFOp::create(builder, loc, type.clone(wide.getElementType()), value);
  }
  Value narrowed(Value value, Type like) const {
    return narrowTo(builder, value, getElementTypeOrSelf(like));
  }
  /// A number of each row, or one row, at all elements.
  Value ofRows(Value value) const {
    return RepeatOp::create(builder, loc, wide, einops(rows, whole), value);
  }
  Value ofRow(Value value) const {
    return row == whole ? value
                        : Value(RepeatOp::create(builder, loc, wide, einops(row, whole), value));
  }
  Value overRow(Reduction kind, Value value) const {
    return ReduceOp::create(builder, loc, rowsType, kind, einops(whole, rows), value);
  }
  Value overRows(Value value) const {
    return row == whole ? value
                        : Value(ReduceOp::create(builder, loc, rowType, Reduction::sum,
                                                 einops(whole, row), value));
  }
  /// The sum of each row over all ranks; divided by its length.
  Value sum(Value value, FactorShards &shards) const {
    return shards.allReduce(overRow(Reduction::sum, value), Reduction::sum);
  }
  Value mean(Value value, FactorShards &shards) const {
    return div(sum(value, shards), constant(rowsType, static_cast<double>(shards.getSize())));
  }

  Value add(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) const { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) const { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) const { return arith::DivFOp::create(builder, loc, a, b); }
  /// 1 / sqrt(square + eps). The kernels and the interpreter take `eps` of a whole norm as a
  /// double: the rounding error of `eps` in the type of sums is added too, which arithmetic of that
  /// type alone would lose.
  Value rstd(Value square, const APFloat &eps) const {
    const double wanted = eps.convertToDouble();
    bool loses = false;
    APFloat rounded = eps;
    rounded.convert(cast<FloatType>(rowsType.getElementType()).getFloatSemantics(),
                    APFloat::rmNearestTiesToEven, &loses);
    Value sum = add(square, constant(rowsType, wanted));
    if (loses)
      sum = add(sum, constant(rowsType, wanted - rounded.convertToDouble()));
    return math::RsqrtOp::create(builder, loc, sum);
  }
};

} // namespace

static double minusInfinity() { return -std::numeric_limits<double>::infinity(); }

//===----------------------------------------------------------------------===//
// Maxima of rows
//===----------------------------------------------------------------------===//

SmallVector<Value> SoftmaxOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                         FactorShards &shards) {
  RowMath m = RowMath::alongLast(builder, getLoc(), operands[0]);
  Value part = shards.masked(operands[0], m.last(), minusInfinity());
  if (!shards.isShared())
    return {SoftmaxOp::create(builder, getLoc(), types[0], part)};
  Value x = m.widened(part);
  Value top = shards.allReduce(m.overRow(Reduction::max, x), Reduction::max);
  Value power = math::ExpOp::create(builder, getLoc(), m.sub(x, m.ofRows(top)));
  return {m.narrowed(m.div(power, m.ofRows(m.sum(power, shards))), types[0])};
}

// Of the ranks with the largest maximum, the one with the smallest index is chosen: negated indices
// are maximized.
SmallVector<Value> ArgmaxOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                        FactorShards &shards) {
  Location loc = getLoc();
  RowMath m = RowMath::alongLast(builder, loc, operands[0]);
  Value x = shards.masked(operands[0], m.last(), minusInfinity());
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
  Value turned = arith::SubIOp::create(builder, loc, m.integer(type, 0), index);
  Value isLess = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, own, top);
  Value none = m.integer(type, -shards.getSize());
  Value candidate = arith::SelectOp::create(builder, loc, isLess, none, turned);
  Value best = shards.allReduce(candidate, Reduction::max);
  return {arith::SubIOp::create(builder, loc, m.integer(type, 0), best)};
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Cumulative sums
//===----------------------------------------------------------------------===//

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
