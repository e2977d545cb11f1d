//===- RowProduct.h - contractions that are one matrix product --*- C++ -*-===//

#ifndef DIALECT_NN_ROWPRODUCT_H
#define DIALECT_NN_ROWPRODUCT_H

#include "dialect/nn/NNDialect.h"
#include <optional>

namespace mlir::nn {

/// The number of outer dimensions of the result that are the rows of a product of two matrices:
/// they come from the left side alone, all others, its columns, from the right side alone, and in
/// each side rows, columns and summed dimensions are contiguous, in one order. Then the product is
/// complete row by row. None for products with a batch, for those that would interleave rows and
/// columns, for types other than f32 and bf16, and where there are no elements.
std::optional<unsigned> getRowDims(EinsumOp op);

} // namespace mlir::nn

#endif // DIALECT_NN_ROWPRODUCT_H
