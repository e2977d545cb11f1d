//===- Recompute.h - recomputation of elementwise ops -----------*- C++ -*-===//

#ifndef PASSES_GLOBAL_RECOMPUTE_H
#define PASSES_GLOBAL_RECOMPUTE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fsdp {

/// True for ops that cost no more than the traffic of their operands.
bool isCheap(Operation *op);

/// Reduces the values that elementwise ops of backward, from `firstBackward` to the end of its
/// block, keep from forward. An elementwise chain (an activation function) whose derivative uses
/// many of its intermediates is recomputed directly before, from values that are kept anyway, or
/// from fewer bytes. Only elementwise ops and broadcasts are recomputed, only for elementwise ops,
/// and none that needs a value of `parameterOnly`, which would gather a parameter once more. Values
/// in `kept` are stored in any case and not recomputed, nor does a stage of a pipeline recompute
/// values of another stage.
void recomputeInBackward(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
                         const DenseSet<Value> &kept);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_RECOMPUTE_H
