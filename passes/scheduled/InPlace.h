//===- InPlace.h - where a launch may write over what it reads --*- C++ -*-===//

#ifndef PASSES_SCHEDULED_INPLACE_H
#define PASSES_SCHEDULED_INPLACE_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Pairs (index in `ins`, index in `outs`) of `launch` that may name the very same bytes: the
/// kernel reads element i of the operand before it writes element i of any result, and reads it
/// for nothing that comes later. Elementwise work is such, with a reduction at its end or without,
/// the optimizer's rule, and what kernels (softmax, rope, norms and their gradients, the gradient
/// of a cross-entropy) and collectives (`fsdp.all_reduce`) say of themselves.
SmallVector<std::pair<int, int>> getInPlacePairs(LaunchOp launch);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_INPLACE_H
