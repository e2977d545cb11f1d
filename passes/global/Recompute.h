//===- Recompute.h - what backward computes again -------------*- C++ -*-===//

#ifndef PASSES_GLOBAL_RECOMPUTE_H
#define PASSES_GLOBAL_RECOMPUTE_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fsdp {

/// True for ops that cost no more than the traffic of their operands.
bool isCheap(Operation *op);

/// Lets the elementwise ops of backward, all from `firstBackward` to the end of its block, take
/// what they need of forward from few stored values. An elementwise chain (an activation function)
/// whose derivative uses many of its intermediates is computed again right before, from values that
/// are kept anyway, or from fewer bytes. Nothing but elementwise ops and broadcasts is computed
/// again, none for an op that is no elementwise one itself, and none that needs a value of
/// `parameterOnly`, which would gather a parameter once more. What is in `kept` is stored in any
/// case, and not computed again.
void recomputeInBackward(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
                         const DenseSet<Value> &kept);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_RECOMPUTE_H
