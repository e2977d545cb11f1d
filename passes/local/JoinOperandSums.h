//===- JoinOperandSums.h - sums of rows beside products ---------*- C++ -*-===//

#ifndef PASSES_LOCAL_JOINOPERANDSUMS_H
#define PASSES_LOCAL_JOINOPERANDSUMS_H

#include "mlir/IR/Block.h"

namespace mlir::fsdp {

/// Makes the sum over the rows of an operand of a product, the gradient of a bias, one kernel with
/// that product, the gradient of its weight, where neither is in a larger one: both read the same
/// matrix. The sum moves to the product, past no collective.
void joinOperandSums(Block &block);

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_JOINOPERANDSUMS_H
