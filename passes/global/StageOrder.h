//===- StageOrder.h - stages that forward can run in --------------*- C++ -*-===//

#ifndef PASSES_GLOBAL_STAGEORDER_H
#define PASSES_GLOBAL_STAGEORDER_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fsdp {

/// Fails unless the ops of the steps of `module`, which have only forward and stages, can be
/// computed stage after stage: numbers are below that of the stages, what says its stage or unit
/// uses no value of a later stage, and each stage has an op of the step that trains. Nothing to
/// check in a module without stages.
LogicalResult verifyStages(ModuleOp module);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_STAGEORDER_H
