//===- Pipelines.cpp - the order of the passes, and why -------------------===//

#include "passes/Pipelines.h"

#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::buildGlobalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // Before differentiation, so that evaluation holds nothing of backward.
  manager.addPass(createDeriveEvaluationPass());
  // Placements first: they are the user's decisions, and everything later reads them.
  ShardParametersPassOptions placements;
  placements.strategy = options.strategy;
  placements.minShardSize = options.minShardSize;
  placements.shard.assign(options.shardPatterns.begin(), options.shardPatterns.end());
  manager.addPass(createShardParametersPass(placements));
  // Reads of one parameter are distinct from here on: backward gets its own.
  manager.addPass(createDifferentiatePass());
  manager.addPass(createApplyOptimizerPass());
  // Once all that computes stands in the step, and before anything changes shape.
  manager.addPass(createPropagatePass());
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::buildLocalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  manager.addPass(createPartitionPass());
  // Its place: fsdp-fuse. After partitioning, so that masks and broadcasts of local shape join kernels.
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
