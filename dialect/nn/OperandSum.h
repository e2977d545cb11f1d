//===- OperandSum.h - a product and the rows of an operand ------*- C++ -*-===//

#ifndef DIALECT_NN_OPERANDSUM_H
#define DIALECT_NN_OPERANDSUM_H

#include "dialect/nn/NNDialect.h"
#include <optional>

namespace mlir::nn {

/// A product of matrices, and beside it the sum over the rows of one of its operands, as the
/// gradients of a weight and of its bias are. Rows are the terms of the product. Both results are
/// f32.
struct OperandSum {
  EinsumOp product;
  ReduceOp sum;
  bool ofRight; ///< the rows are those of the right operand
};

/// True where `sum` adds up the rows of the right (`ofRight`) or left operand of `product`, of
/// `operand` as both see it or widened to f32, and the product is one call of a library: a number
/// of the sum for each index of the operand's other dimensions, which are the inner ones.
bool addsUpRows(ReduceOp sum, Value operand, EinsumOp product, bool ofRight);

/// The two of `op`, an nn.fused of nothing else that yields the product first; none for other ops.
std::optional<OperandSum> getOperandSum(Operation *op);

} // namespace mlir::nn

#endif // DIALECT_NN_OPERANDSUM_H
