//===- Precision.h - the types of sums --------------------------*- C++ -*-===//

#ifndef DIALECT_NN_PRECISION_H
#define DIALECT_NN_PRECISION_H

#include "mlir/IR/Builders.h"

namespace mlir::nn {

/// The element type, or the tensor of it, in which sums of elements of `type` are formed and kept:
/// f32 for 16-bit floats, else `type` itself. Statistics and sums over rows have it.
Type getSumType(Type type);

/// The tensor `value` with elements of `element`: itself, or rounded to that narrower float type.
Value narrowTo(OpBuilder &builder, Value value, Type element);

/// A constant of `type`, a tensor of floats or integers, with all elements `value`.
Value createSplat(OpBuilder &builder, Location loc, Type type, double value);

} // namespace mlir::nn

#endif // DIALECT_NN_PRECISION_H
