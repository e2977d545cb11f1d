//===- StageSums.h - gradients of the stages of a pipeline ------*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_STAGESUMS_H
#define PASSES_LOCAL_PARTITION_STAGESUMS_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The terms of a sum of contributions to a gradient, and in `sums` the ops that add them up. With
/// `byStage` the sum of terms of one stage is a term.
void collectTerms(Value gradient, bool byStage, SmallVectorImpl<Value> &terms,
                  SmallVectorImpl<Operation *> &sums);

/// Adds up the terms of each gradient of `step`, a parameter that several stages use, by stage, so
/// that each stage can reduce its sum. Terms with different shardings stay as they are.
void groupSumsByStage(StepOp step);

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_PARTITION_STAGESUMS_H
