//===- RowMath.cpp --------------------------------------------------------===//

#include "dialect/nn/RowMath.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

RowMath::RowMath(OpBuilder &builder, Location loc, RankedTensorType type, int64_t along)
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

RowMath RowMath::alongLast(OpBuilder &builder, Location loc, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  return RowMath(builder, loc, type, type.getRank() - 1);
}

std::string RowMath::einops(const NotationTensor &from, const NotationTensor &to) {
  Notation notation;
  notation.operands.push_back(from);
  notation.result = to;
  return notation.printEinops();
}

Value RowMath::widened(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == wide.getElementType())
    return value;
  return arith::ExtFOp::create(builder, loc, type.clone(wide.getElementType()), value);
}

Value RowMath::narrowed(Value value, Type like) const {
  return narrowTo(builder, value, getElementTypeOrSelf(like));
}

Value RowMath::ofRows(Value value) const {
  return RepeatOp::create(builder, loc, wide, einops(rows, whole), value);
}

Value RowMath::ofRow(Value value) const {
  return row == whole ? value
                      : Value(RepeatOp::create(builder, loc, wide, einops(row, whole), value));
}

Value RowMath::overRow(Reduction kind, Value value) const {
  return ReduceOp::create(builder, loc, rowsType, kind, einops(whole, rows), value);
}

Value RowMath::overRows(Value value) const {
  return row == whole ? value
                      : Value(ReduceOp::create(builder, loc, rowType, Reduction::sum,
                                               einops(whole, row), value));
}

Value RowMath::sum(Value value, FactorShards &shards) const {
  return shards.allReduce(overRow(Reduction::sum, value), Reduction::sum);
}

Value RowMath::mean(Value value, FactorShards &shards) const {
  return div(sum(value, shards),
             createSplat(builder, loc, rowsType, static_cast<double>(shards.getSize())));
}

Value RowMath::rstd(Value square, const APFloat &eps) const {
  const double wanted = eps.convertToDouble();
  bool loses = false;
  APFloat rounded = eps;
  rounded.convert(cast<FloatType>(rowsType.getElementType()).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &loses);
  Value sum = add(square, createSplat(builder, loc, rowsType, wanted));
  if (loses)
    sum = add(sum, createSplat(builder, loc, rowsType, wanted - rounded.convertToDouble()));
  return math::RsqrtOp::create(builder, loc, sum);
}
