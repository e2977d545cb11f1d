//===- LossWeight.h - divisors of sums of losses and metrics ----*- C++ -*-===//

#ifndef PASSES_GLOBAL_LOSSWEIGHT_H
#define PASSES_GLOBAL_LOSSWEIGHT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp {

/// `weight`, a number of type f64, or 1 where it is 0: a batch without valid terms has the loss 0
/// and gradients of 0 instead of NaN. A constant, which is above 0, stays as it is.
Value buildDivisor(OpBuilder &builder, Location loc, Value weight);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_LOSSWEIGHT_H
