//===- Deferred.h - updates that the next step performs ---------*- C++ -*-===//
// Discardable unit attributes that mark the updates moved by `fsdp-defer-updates`:
//
// - `fsdp.deferred` on a `fsdp.optimizer_step`: it is performed after its own step has been
// advanced, in the
//   next step or in a drain. Its own update is among those that the step state has counted, so bias
//   correction uses the count less one. Gradient, rate, scale and `ok` are those of its step.
// - `fsdp.zeroed` on a `fsdp.carried` or on a persistent `fsdp.buffer`: it holds zeros before the
// first
//   segment instead of being unwritten.
// - `fsdp.drain` on a segment that trains: it performs the updates that a step left to the next
// one. It runs between training and any use of the parameters, as a separate walk.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_DEFERRED_H
#define DIALECT_FSDP_DEFERRED_H

#include "dialect/fsdp/DiscardableAttributes.h"
#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

inline bool isDeferred(OptimizerStepOp update) { return update->hasAttr(kDeferredAttrName); }
/// `op`: a `fsdp.carried` or a `fsdp.buffer`.
inline bool isZeroed(Operation *op) { return op->hasAttr(kZeroedAttrName); }
inline bool isDrain(SegmentOp segment) { return segment->hasAttr(kDrainAttrName); }
/// True where the first segment of `walk` is a drain; then it is the only one.
bool isDrain(WalkOp walk);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_DEFERRED_H
