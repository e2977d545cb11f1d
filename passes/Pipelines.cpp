//===- Pipelines.cpp - the order of the passes, and why -------------------===//

#include "passes/Pipelines.h"

#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::buildGlobalPipeline(OpPassManager &manager, const PipelineOptions &options) {
  // Before differentiation, so that evaluation holds nothing of backward, and no checkpoints.
  manager.addPass(createDeriveEvaluationPass());
  // Placements first: they are the user's decisions, and everything later reads them.
  ShardParametersPassOptions placements;
  placements.strategy = options.strategy;
  placements.minShardSize = Count{options.minShardSize};
  placements.shard = llvm::join(options.shardPatterns, ";");
  manager.addPass(createShardParametersPass(placements));
  // Part of each placement, which has to stand. Left alone, placements of the model stay.
  if (options.reshard != "always") {
    ReshardAfterForwardPassOptions reshard;
    reshard.when = options.reshard;
    manager.addPass(createReshardAfterForwardPass(reshard));
  }
  // Types and casts stand before anything is differentiated or costed.
  MixedPrecisionPassOptions precision;
  precision.compute = options.precision;
  precision.reduce = options.reducePrecision;
  manager.addPass(createMixedPrecisionPass(precision));
  // Once casts stand, since they are values to mask; loss and metrics are still sums over weights.
  manager.addPass(createCountSamplesPass());
  // Regions hold the values that backward would keep: casts among them, so after mixed precision.
  // Models may have fsdp.checkpoint regions of their own before, which the passes above step into
  // or leave alone; differentiation ends all regions, so that no pass below sees one.
  if (options.remat != "none") {
    RematerializePassOptions remat;
    remat.policy = options.remat;
    manager.addPass(createRematerializePass(remat));
  }
  // Reads of one parameter are distinct from here on: backward gets its own.
  // Over microbatches, sums of losses add up; their weight is known after the last one.
  DifferentiatePassOptions gradients;
  gradients.ofSum = options.accumulate > 1;
  manager.addPass(createDifferentiatePass(gradients));
  manager.addPass(createApplyOptimizerPass());
  // Once all that computes stands in the step, and before anything changes shape.
  PropagatePassOptions propagation;
  propagation.batchAxes.assign(options.batchAxes.begin(), options.batchAxes.end());
  propagation.accumulate = Microbatches{options.accumulate};
  propagation.explain = options.explainShardings;
  manager.addPass(createPropagatePass(propagation));
  // Once it is known how many ranks share a vocabulary: each has a multiple of its own.
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
  // Of the rows that one rank has in one microbatch, forward and backward at once; before chunks
  // become kernels.
  if (options.lossChunks != 1) {
    ChunkLossPassOptions loss;
    loss.chunks = PositiveCount{options.lossChunks};
    manager.addPass(createChunkLossPass(loss));
  }
  // Once gathers stand in their places, and before kernels are formed: what is carried is computed
  // in place.
  if (options.deferUpdates == DeferUpdates::on)
    manager.addPass(createDeferUpdatesPass());
  // After partitioning, so that masks and broadcasts of local shape join kernels.
  manager.addPass(createFusePass());
  manager.addPass(createVerifyPhasePass());
}

void mlir::fsdp::buildScheduledPipeline(OpPassManager &manager, const PipelineOptions &options) {
  SchedulePassOptions schedule;
  schedule.prefetch = Count{options.prefetch};
  manager.addPass(createSchedulePass(schedule));
  // After the waits: buffers may share bytes only where streams and waits keep their lives apart.
  manager.addPass(createPlanMemoryPass());
  // Once offsets are known: what follows waits for bytes, not for the end of a segment.
  manager.addPass(createLinkSegmentsPass());
  // On every compile, by code that shares nothing with the passes above.
  manager.addPass(createVerifySchedulePass());
  manager.addPass(createVerifyPhasePass());
}

namespace {
/// The textual form of PipelineOptions.
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> strategy{*this, "strategy", llvm::cl::desc("ddp, zero1, zero2, fsdp or hsdp"),
                               llvm::cl::init("fsdp")};
  Option<std::string> reshard{
      *this, "reshard-after-forward",
      llvm::cl::desc("when gathered parameters are released: always, never or axes:A+B"),
      llvm::cl::init("always")};
  ListOption<std::string> batchAxes{
      *this, "batch-axes", llvm::cl::desc("axes that split the batch besides data and fsdp")};
  Option<Count> minShardSize{*this, "min-shard-size",
                             llvm::cl::desc("elements below which a parameter is replicated"),
                             llvm::cl::init(Count{0})};
  Option<std::string> shard{*this, "shard", llvm::cl::desc("PATTERN:SPEC, separated by ';'")};
  Option<Count> prefetch{*this, "prefetch", llvm::cl::desc("gathers that may run ahead"),
                         llvm::cl::init(Count{1})};

  Option<Microbatches> accumulate{*this, "accumulate", llvm::cl::desc("microbatches of a step"),
                                  llvm::cl::init(Microbatches{1})};
  Option<std::string> accumulateReduce{
      *this, "accumulate-reduce",
      llvm::cl::desc("microbatches that reduce gradients: each, last or auto"),
      llvm::cl::init("auto")};
  Option<std::string> tiedGradients{
      *this, "tied-gradients",
      llvm::cl::desc("reductions of gradients of parameters with several uses: each or once"),
      llvm::cl::init("each")};
  Option<DeferUpdates> deferUpdates{
      *this, "defer-updates", llvm::cl::desc("where updates run"),
      llvm::cl::init(DeferUpdates::off),
      llvm::cl::values(clEnumValN(DeferUpdates::off, "off", "at the end of their step"),
                       clEnumValN(DeferUpdates::on, "on", "before the gathers of the next step"))};
  Option<std::string> buckets{*this, "buckets", llvm::cl::desc("unit or parameter"),
                              llvm::cl::init("unit")};
  Option<std::string> precision{*this, "precision", llvm::cl::desc("f32 or bf16"),
                                llvm::cl::init("f32")};
  Option<std::string> remat{*this, "remat", llvm::cl::desc("none, full, selective or every:K"),
                            llvm::cl::init("none")};
  Option<PositiveCount> lossChunks{*this, "loss-chunks", llvm::cl::desc("chunks of logits"),
                                   llvm::cl::init(PositiveCount{1})};
  Option<PositiveCount> vocabularyMultiple{
      *this, "vocabulary-multiple",
      llvm::cl::desc("preferred divisor of a rank's part of a vocabulary"),
      llvm::cl::init(PositiveCount{64})};
  Option<Count> mostVocabularyPadding{*this, "most-vocabulary-padding",
                                      llvm::cl::desc("maximum padding of a vocabulary, in percent"),
                                      llvm::cl::init(Count{5})};
  Option<std::string> reducePrecision{*this, "reduce-precision", llvm::cl::desc("f32 or bf16"),
                                      llvm::cl::init("f32")};

  PipelineOptions get() const {
    PipelineOptions options;
    options.precision = precision;
    options.reducePrecision = reducePrecision;
    options.remat = remat;
    options.lossChunks = lossChunks.value;
    options.vocabularyMultiple = vocabularyMultiple.value;
    options.mostVocabularyPadding = mostVocabularyPadding.value;
    options.buckets = buckets;
    options.strategy = strategy;
    options.reshard = reshard;
    options.batchAxes.assign(batchAxes.begin(), batchAxes.end());
    options.minShardSize = minShardSize.value;
    SmallVector<StringRef> patterns;
    StringRef(shard).split(patterns, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef pattern : patterns)
      options.shardPatterns.push_back(pattern.str());
    options.prefetch = prefetch.value;
    options.accumulate = accumulate.value;
    options.accumulateReduce = accumulateReduce;
    options.tiedGradients = tiedGradients;
    options.deferUpdates = deferUpdates;
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
