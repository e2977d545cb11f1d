//===- Pipelines.cpp - the order of the passes, and why -------------------===//

#include "passes/Pipelines.h"

#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::buildForwardPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // First, so that every other pass sees ops with derivatives and sharding rules.
  manager.addNestedPass<StepOp>(createInlineManualPass());
  // Before differentiation, so that evaluation holds nothing of backward, and no checkpoints.
  manager.addPass(createDeriveEvaluationPass());
  // Placements first: they are the user's decisions, and everything later reads them.
  ShardParametersPassOptions placements;
  placements.strategy = options.strategy;
  placements.minShardSize = Count{options.minShardSize};
  placements.shard = llvm::join(options.shardPatterns, ";");
  manager.addPass(createShardParametersPass(placements));
  // Changes placements, so they must exist. Without the option, the placements of the model are
  // kept.
  if (options.reshard != "always") {
    ReshardAfterForwardPassOptions reshard;
    reshard.when = options.reshard;
    manager.addPass(createReshardAfterForwardPass(reshard));
  }
  // Types and casts must exist before differentiation and cost estimates.
  MixedPrecisionPassOptions precision;
  precision.compute = options.precision;
  precision.reduce = options.reducePrecision;
  manager.addPass(createMixedPrecisionPass(precision));
  // After casts are inserted, as they are values to mask; loss and metrics are still sums and
  // weights.
  manager.addNestedPass<StepOp>(createCountSamplesPass());
  // After values have the types in which they are computed; as metrics they stay outside regions.
  manager.addNestedPass<StepOp>(createLowerPrintsPass());
  // Derived from the typed evaluation step; before the parameters of each step are sharded.
  if (options.generate)
    manager.addPass(createDeriveGenerationPass());
  // Before backward copies the constraints; the axis tensor then splits the remaining positions.
  ContextParallelPassOptions context;
  context.attention = options.contextAttention;
  context.order = options.contextOrder;
  manager.addPass(createContextParallelPass(context));
  // Before backward copies the marks; the steps of generation have few positions.
  SequenceParallelPassOptions sequence;
  sequence.mode = options.sequenceParallel;
  manager.addPass(createSequenceParallelPass(sequence));
}

void mlir::fsdp::buildGlobalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  buildForwardPipeline(manager, options);
  // After all ops of forward exist, and before regions, which belong to one stage, and backward,
  // which follows the stages of forward.
  AssignStagesPassOptions stages;
  stages.stages = options.stages;
  stages.schedule = options.pipelineSchedule;
  manager.addPass(createAssignStagesPass(stages));
  // Regions hold the values that backward would keep: casts among them, so after mixed precision.
  // Models may already have fsdp.checkpoint regions; the passes above process their bodies or skip
  // them. Differentiation removes all regions, so the passes below never handle one.
  if (options.remat != "none") {
    RematerializePassOptions remat;
    remat.policy = options.remat;
    manager.addPass(createRematerializePass(remat));
  }
  // From here on, forward and backward have separate reads of a parameter. Sums of losses are
  // accumulated over microbatches; their weight is known after the last one.
  DifferentiatePassOptions gradients;
  gradients.ofSum = options.accumulate > 1;
  manager.addNestedPass<StepOp>(createDifferentiatePass(gradients));
  manager.addNestedPass<StepOp>(createApplyOptimizerPass());
  // After all computation is in the step, and before shapes change.
  PropagatePassOptions propagation;
  propagation.batchAxes.assign(options.batchAxes.begin(), options.batchAxes.end());
  propagation.accumulate = Microbatches{options.accumulate};
  propagation.explain = options.explainShardings;
  manager.addPass(createPropagatePass(propagation));
  // After it is known how many ranks share a vocabulary: each has a multiple of the chosen size.
  PadVocabularyPassOptions vocabulary;
  vocabulary.multiple = PositiveCount{options.vocabularyMultiple};
  vocabulary.mostPadding = Count{options.mostVocabularyPadding};
  manager.addPass(createPadVocabularyPass(vocabulary));
  if (options.printShardings)
    manager.addPass(createPrintShardingsPass());
  if (!options.drawSharding.empty()) {
    auto [value, file] = StringRef(options.drawSharding).split('=');
    DrawShardingPassOptions drawing;
    drawing.value = value.str();
    drawing.file = file.str();
    manager.addPass(createDrawShardingPass(drawing));
  }
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::buildLocalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // Microbatches too: they are a split of the batch, over time.
  PartitionPassOptions partition;
  partition.accumulateReduce = options.accumulateReduce;
  partition.tiedGradients = options.tiedGradients;
  partition.buckets = options.buckets;
  manager.addPass(createPartitionPass(partition));
  // Chunks are rows of one rank in one microbatch, with forward and backward together; before
  // chunks become kernels.
  if (options.lossChunks != 1) {
    ChunkLossPassOptions loss;
    loss.chunks = PositiveCount{options.lossChunks};
    manager.addPass(createChunkLossPass(loss));
  }
  // After the last pass that looks at a whole step; each program is then fused and scheduled by
  // itself.
  manager.addPass(createSplitStagesPass());
  // Within each chunk; before kernels are formed, which end at collectives.
  manager.addNestedPass<ProgramOp>(createJoinAllReducesPass());
  // Before chains are formed, which would take the additions.
  manager.addNestedPass<ProgramOp>(createJoinKernelsPass());
  // Kernels are formed after partitioning, so that masks and broadcasts of local shape join them,
  // and once for all microbatches of a pipeline. Deferred updates are the exception: their pass
  // needs the whole step, and kernels after it, which compute the values that it carries in place.
  const bool defers = options.deferUpdates == "on";
  if (!defers)
    manager.addNestedPass<ProgramOp>(createFusePass());
  PipelineMicrobatchesPassOptions pipeline;
  pipeline.schedule = options.pipelineSchedule;
  manager.addPass(createPipelineMicrobatchesPass(pipeline));
  if (defers) {
    manager.addPass(createDeferUpdatesPass());
    manager.addNestedPass<ProgramOp>(createFusePass());
  }
  manager.addPass(createVerifyPhasePass());
}

static SchedulePassOptions getScheduleOptions(const PipelineOptions &options) {
  SchedulePassOptions schedule;
  schedule.prefetch = Count{options.prefetch};
  schedule.group = options.buckets != "parameter"; // else each parameter is gathered by itself
  return schedule;
}

static void buildSchedule(OpPassManager &manager, std::unique_ptr<Pass> schedule,
                          std::unique_ptr<Pass> verification) {
  manager.addPass(std::move(schedule));
  // After the waits: buffers may share bytes only where streams and waits keep their lives apart.
  manager.addPass(createPlanMemoryPass());
  // After offsets are known: later launches wait for accesses to bytes, not for the end of a
  // segment.
  manager.addPass(createLinkSegmentsPass());
  // On every compile, by code that shares nothing with the passes above.
  manager.addPass(std::move(verification));
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::buildScheduledPipeline(OpPassManager &manager, const PipelineOptions &options) {
  buildSchedule(manager, createSchedulePass(getScheduleOptions(options)),
                createVerifySchedulePass());
}

void mlir::fsdp::buildVerifiedPipeline(OpPassManager &manager, const PipelineOptions &options,
                                       std::optional<ScheduleProblem> &verified, bool &isLimited) {
  buildSchedule(manager, createSchedulePass(getScheduleOptions(options), isLimited),
                fsdp::createVerifySchedulePass(verified));
}

namespace {
/// The textual form of PipelineOptions.
struct TextOptions : PassPipelineOptions<TextOptions> {
#define FSDP_WORD(field, flag, initial, words, description)                                        \
  Option<std::string> field{*this, flag, llvm::cl::desc(words ": " description),                   \
                            llvm::cl::init(initial)};
#define FSDP_FLAG(field, flag, description)                                                        \
  Option<bool> field{*this, flag, llvm::cl::desc(description), llvm::cl::init(false)};
#define FSDP_TEXT(field, flag, initial, form, check, description)                                  \
  FSDP_WORD(field, flag, initial, form, description)
#define FSDP_COUNT(type, field, flag, initial, letter, description)                                \
  Option<type> field{*this, flag, llvm::cl::desc(description), llvm::cl::init(type{initial})};
#include "passes/PipelineOptions.def"
  ListOption<std::string> batchAxes{
      *this, "batch-axes", llvm::cl::desc("axes that split the batch besides data and fsdp")};
  Option<std::string> shard{*this, "shard", llvm::cl::desc("PATTERN:SPEC, separated by ';'")};

  PipelineOptions get() const {
    PipelineOptions options;
#define FSDP_WORD(field, flag, initial, words, description) options.field = field;
#define FSDP_FLAG(field, flag, description) options.field = field;
#define FSDP_TEXT(field, flag, initial, form, check, description) options.field = field;
#define FSDP_COUNT(type, field, flag, initial, letter, description) options.field = field.value;
#include "passes/PipelineOptions.def"
    options.batchAxes.assign(batchAxes.begin(), batchAxes.end());
    SmallVector<StringRef> patterns;
    StringRef(shard).split(patterns, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef pattern : patterns)
      options.shardPatterns.push_back(pattern.str());
    return options;
  }
};
} // namespace

void mlir::fsdp::registerPasses() {
  registerFSDPPasses();
  static PassPipelineRegistration<TextOptions> global(
      "fsdp-to-global", "From a model to global IR that has gradients, updates and shardings",
      [](OpPassManager &manager, const TextOptions &options) {
        buildGlobalPipeline(manager, options.get());
      });
  static PassPipelineRegistration<TextOptions> local(
      "fsdp-to-local", "From a model to the program of one rank",
      [](OpPassManager &manager, const TextOptions &options) {
        buildGlobalPipeline(manager, options.get());
        buildLocalPipeline(manager, options.get());
      });
  static PassPipelineRegistration<TextOptions> scheduled(
      "fsdp-to-scheduled", "From a model to launches on streams and buffers in the arena",
      [](OpPassManager &manager, const TextOptions &options) {
        buildGlobalPipeline(manager, options.get());
        buildLocalPipeline(manager, options.get());
        buildScheduledPipeline(manager, options.get());
      });
}
