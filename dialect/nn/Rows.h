//===- Rows.h - common code of ops on rows ----------------------*- C++ -*-===//
//
// A row is the last dimension of a tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_ROWS_H
#define DIALECT_NN_ROWS_H

#include "dialect/nn/ShardingRule.h"

namespace mlir::nn {

/// Fails unless `whole`, an operand that messages call `name`, has a last dimension.
LogicalResult verifyHasRows(Operation *op, RankedTensorType whole, StringRef name);

/// Fails unless `tensor`, which messages call `name`, has one element for each row of `whole`.
LogicalResult verifyRows(Operation *op, RankedTensorType whole, RankedTensorType tensor,
                         StringRef name);

/// The rule of an op of which every operand and result has the dimensions of `whole` or the first
/// of them. Rows are parallel; the last dimension of `whole` is of kind `last`.
ShardingRule rowRule(Operation *op, RankedTensorType whole, FactorKind last);

} // namespace mlir::nn

#endif // DIALECT_NN_ROWS_H
