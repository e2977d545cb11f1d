//===- InPlace.h - where a launch may write over what it reads --*- C++ -*-===//

#ifndef PASSES_INPLACE_H
#define PASSES_INPLACE_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Pairs (index in `ins`, index in `outs`) of `launch` that may name the very same bytes: the
/// kernel reads element i of the operand before it writes element i of any result, and reads it
/// for nothing else. Elementwise work and the optimizer's rule are such.
SmallVector<std::pair<int, int>> getInPlacePairs(LaunchOp launch);

} // namespace mlir::fsdp

#endif // PASSES_INPLACE_H
