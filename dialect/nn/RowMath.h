//===- RowMath.h - arithmetic on rows that ranks share ----------*- C++ -*-===//
//
// The steps of `buildSplit` for ops that work along a dimension: each rank computes a maximum or a
// sum of its part of a row, these are combined over ranks, and the rest is elementwise. Numbers of
// a row have the type of sums. Padding that may not be 0 is masked before reductions and in
// results.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_ROWMATH_H
#define DIALECT_NN_ROWMATH_H

#include "dialect/nn/NNDialect.h"

namespace mlir::nn {

/// Arithmetic on tensors with the names d0, d1, ... of which `along` is the dimension that ranks
/// share.
struct RowMath {
  OpBuilder &builder;
  Location loc;
  /// Types of a whole tensor on this rank, of one number per row, and of one row, all in the type
  /// of sums.
  RankedTensorType wide, rowsType, rowType;
  NotationTensor whole, rows, row;

  RowMath(OpBuilder &builder, Location loc, RankedTensorType type, int64_t along);
  static RowMath alongLast(OpBuilder &builder, Location loc, Value x);
  int64_t last() const { return wide.getRank() - 1; }

  static std::string einops(const NotationTensor &from, const NotationTensor &to);

  Value widened(Value value) const;
  Value narrowed(Value value, Type like) const;
  /// A number of each row, or one row, at all elements.
  Value ofRows(Value value) const;
  Value ofRow(Value value) const;
  Value overRow(Reduction kind, Value value) const;
  Value overRows(Value value) const;
  /// The sum of each row over all ranks; divided by its length.
  Value sum(Value value, FactorShards &shards) const;
  Value mean(Value value, FactorShards &shards) const;

  Value add(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) const { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) const { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) const { return arith::DivFOp::create(builder, loc, a, b); }
  /// 1 / sqrt(square + eps). The kernels and the interpreter take `eps` of a whole norm as a
  /// double: the rounding error of `eps` in the type of sums is added too, which arithmetic of that
  /// type alone would lose.
  Value rstd(Value square, const APFloat &eps) const;
};

} // namespace mlir::nn

#endif // DIALECT_NN_ROWMATH_H
