//===- Deferred.h - updates that the next step performs ---------*- C++ -*-===//
//
// How IR says where updates stand that `fsdp-defer-updates` has moved, in discardable unit
// attributes:
//
// - `fsdp.deferred` on a `fsdp.optimizer_step`: it is performed after its own step has been
// advanced, in the
//   next step or in a drain. Its own update is among those that the step state has counted, so bias
//   correction uses the count less one. Gradient, rate, scale and `ok` are those of its own step.
// - `fsdp.zeroed` on a `fsdp.carried` or on a persistent `fsdp.buffer`: it holds zeros before the
// first
//   segment, and not nothing.
// - `fsdp.drain` on a segment that trains: it performs the updates that a step has left for the
// next one. It
//   stands between training and whatever looks at parameters, and is a walk of its own.
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
