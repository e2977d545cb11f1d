//===- ConcatGradients.h - gradients of slices ------------------*- C++ -*-===//

#ifndef PASSES_GLOBAL_CONCATGRADIENTS_H
#define PASSES_GLOBAL_CONCATGRADIENTS_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The gradient of a value that is split into slices is a sum of padded pieces. If the pieces fill
/// it without a gap, such a sum, from `first` to the end of its block, becomes an `nn.concat` of
/// them: each piece is written once and nothing is added. (The same numbers, except for the sign of
/// a zero.)
void concatenateGradients(Operation *first);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_CONCATGRADIENTS_H
