//===- Fill.h - the values that masks write ---------------------*- C++ -*-===//

#ifndef DIALECT_FSDP_FILL_H
#define DIALECT_FSDP_FILL_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// The value of type `element` that a mask's `fill` denotes. An infinity is the greatest or
/// least value of an integer type, where `i1` holds 0 and 1.
TypedAttr getFill(const APFloat &fill, Type element);

namespace detail {
/// Fails unless `fill` is a number or an infinity, and an integer of the type where `element` is
/// one.
LogicalResult verifyFill(Operation *op, const APFloat &fill, Type element);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_FILL_H
