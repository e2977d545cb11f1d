//===- Checks.h - what operations ask of their operands ---------*- C++ -*-===//

#ifndef DSL_CHECKS_H
#define DSL_CHECKS_H

#include "dsl/Model.h"

namespace fsdp::dsl {

/// Throws unless `input`, an operand of the operation `what`, has floats.
inline void requireFloat(const char *what, const Located &input) {
  if (!llvm::isa<mlir::FloatType>(input.tensor.type().getElementType()))
    Model::fail(what, {input.tensor}, input.where, "expected a float element type");
}

/// The shape of the rows of `input`: all dimensions but the last, which must exist.
inline Shape rowShape(const char *what, const Located &input) {
  Shape shape = input.tensor.shape();
  if (shape.empty())
    Model::fail(what, {input.tensor}, input.where, "expected at least one dimension, the row's");
  shape.pop_back();
  return shape;
}

} // namespace fsdp::dsl

#endif // DSL_CHECKS_H
