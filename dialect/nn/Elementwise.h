//===- Elementwise.h - elementwise ops of arith and math --------*- C++ -*-===//

#ifndef DIALECT_NN_ELEMENTWISE_H
#define DIALECT_NN_ELEMENTWISE_H

#include "mlir/IR/Operation.h"
#include <string>

namespace mlir::nn {

/// The C++ expression of one element of the result of `op`, an op of the table of elementwise ops
/// (ElementwiseModels.cpp); "" for other ops. `$0`, `$1`, ... denote elements of its operands,
/// `#exp`, `#sqrt`, ... for functions, which targets name differently, `@` for the type of the
/// result, and `@u` for the unsigned integer of its width (32 bits at least).
std::string elementExpression(Operation *op);

} // namespace mlir::nn

#endif // DIALECT_NN_ELEMENTWISE_H
