//===- InPlace.h - operands that a launch may overwrite ---------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_INPLACE_H
#define PASSES_SCHEDULED_INPLACE_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Pairs (index in `ins`, index in `outs`) of `launch` that may name the very same bytes: the
/// kernel reads element i of the operand before it writes element i of any result, and does not
/// read it later. This holds for elementwise work, with or without a final reduction, the
/// optimizer's rule, and the kernels (softmax, rope, norms and their gradients, the gradient of a
/// cross-entropy) and collectives (`fsdp.all_reduce`) that declare it.
SmallVector<std::pair<int, int>> getInPlacePairs(LaunchOp launch);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_INPLACE_H
