//===- Pipelines.cpp - the order of the passes, and why -------------------===//

#include "passes/Pipelines.h"

#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::buildGlobalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // Before differentiation, so that evaluation holds nothing of backward.
  manager.addPass(createDeriveEvaluationPass());
  // Its place: fsdp-shard-parameters. Reads of one parameter are distinct from here on.
  manager.addPass(createDifferentiatePass());
  manager.addPass(createApplyOptimizerPass());
  // Its place: fsdp-propagate. All that computes stands in the step now.
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::buildLocalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // Their places: fsdp-partition, fsdp-fuse.
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::buildScheduledPipeline(OpPassManager &manager, const PipelineOptions &options) {
  SchedulePassOptions schedule;
  schedule.prefetch = static_cast<int>(options.prefetch);
  manager.addPass(createSchedulePass(schedule));
  // After the waits: buffers may share bytes only where streams and waits keep their lives apart.
  manager.addPass(createPlanMemoryPass());
  // On every compile, by code that shares nothing with the two passes above.
  manager.addPass(createVerifySchedulePass());
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::registerPasses() { registerFSDPPasses(); }
