//===- Partition.cpp - from one device to one rank ------------------------===//
//
// The jobs, one file each in partition/: StorageLayout (the storages of a rank), Gathers
// (parameters into compute), LocalOps (compute and its padding), Manual (regions in local
// terms), LocalValues (resharding), Gradients (sums into shards), Optimizer (norms and updates),
// Microbatches (steps in several parts).
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/local/partition/Microbatches.h"
#include "passes/local/partition/StageSums.h"
#include "passes/local/partition/StepPartitioner.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct Partition : fsdp::impl::PartitionPassBase<Partition> {
  using Base::Base;

  void runOnOperation() override;
};
} // namespace

void Partition::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<StepOp> steps(module.getOps<StepOp>());
  if (getPhase(module) != Phase::global) {
    module.emitError() << "module is in the " << stringifyPhase(getPhase(module))
                       << " phase, expected global; partition a module once";
    return signalPassFailure();
  }
  if (failed(verifyPhase(module, Phase::global)))
    return signalPassFailure();
  if (steps.empty()) {
    module.emitError() << "module has no 'fsdp.step' to partition";
    return signalPassFailure();
  }
  if (!getMeshOp(module)) {
    module.emitError()
        << "module has no mesh to partition its steps over; declare one, for one rank "
           "'fsdp.mesh @mesh <[\"fsdp\"=1]>'";
    return signalPassFailure();
  }
  auto when = llvm::StringSwitch<std::optional<AccumulateReduce>>(accumulateReduce)
                  .Case("auto", AccumulateReduce::automatic)
                  .Case("each", AccumulateReduce::each)
                  .Case("last", AccumulateReduce::last)
                  .Default(std::nullopt);
  if (!when) {
    module.emitError() << "option 'accumulate-reduce' is '" << accumulateReduce
                       << "', expected auto, each or last";
    return signalPassFailure();
  }
  auto tied = llvm::StringSwitch<std::optional<TiedGradients>>(tiedGradients)
                  .Case("each", TiedGradients::each)
                  .Case("once", TiedGradients::once)
                  .Default(std::nullopt);
  if (!tied) {
    module.emitError() << "option 'tied-gradients' is '" << tiedGradients
                       << "', expected each or once";
    return signalPassFailure();
  }
  const std::optional<Buckets> bucket = Buckets::parse(buckets);
  if (!bucket) {
    module.emitError() << "option 'buckets' is '" << buckets << "', expected " << bucketsForm;
    return signalPassFailure();
  }
  for (StepOp step : steps)
    groupSumsByStage(step);
  // All properties of the steps are read before the first other change.
  SmallVector<StepShardings, 0> shardings;
  for (StepOp step : steps) {
    FailureOr<StepShardings> read = StepShardings::read(step);
    if (failed(read))
      return signalPassFailure();
    shardings.push_back(std::move(*read));
  }
  FailureOr<PaddedShapes> padded = PaddedShapes::read(module);
  if (failed(padded))
    return signalPassFailure();
  FailureOr<StorageLayout> layout = StorageLayout::create(module, *bucket);
  if (failed(layout))
    return signalPassFailure();

  SymbolTable symbols(module);
  OpBuilder builder(steps.front());
  layout->declare(builder, symbols);
  auto program = ProgramOp::create(builder, module.getLoc(), "all", builder.getDictionaryAttr({}),
                                   IntegerAttr());
  symbols.insert(program, builder.getInsertionPoint());
  Block *segments = builder.createBlock(&program.getBody());
  MeshOp mesh = getMeshOp(module);
  const int64_t microbatches = mesh.getMesh().getAxisSize(kMicrobatchAxis);
  // Batches are split; the sample of a generated text is not a batch.
  auto isCut = [&](StepOp step) {
    return microbatches > 1 &&
           (step.getKind() == StepKind::train || step.getKind() == StepKind::evaluate);
  };
  // The segment with which the walk of a step begins; walks have the names of steps.
  auto getFirstSegment = [&](StepOp step) {
    const std::string name = step.getSymName().str();
    return isCut(step) ? getMicrobatchSegment(name) : microbatches > 1 ? name + ".all" : name;
  };
  SmallVector<Attribute> next = llvm::map_to_vector(steps, [&](StepOp step) -> Attribute {
    return FlatSymbolRefAttr::get(module.getContext(), getFirstSegment(step));
  });
  for (auto [step, shardings] : llvm::zip_equal(steps, shardings)) {
    builder.setInsertionPointToEnd(segments);
    const std::string name = isCut(step) ? step.getSymName().str() : getFirstSegment(step);
    auto segment = SegmentOp::create(builder, step.getLoc(), name, step.getKind(),
                                     /*async=*/false, /*drain=*/false, builder.getArrayAttr(next));
    builder.createBlock(&segment.getBody());
    if (failed(StepPartitioner(step, shardings, *padded, *layout, *when, *tied, builder).run()))
      return signalPassFailure();
    if (isCut(step) &&
        failed(cutIntoMicrobatches(segment, microbatches, builder.getArrayAttr(next), symbols)))
      return signalPassFailure();
  }
  // Besides walks of several segments there are walks of one segment.
  for (StepOp step : steps)
    if (microbatches > 1 && !isCut(step)) {
      builder.setInsertionPoint(*program.getOps<SegmentOp>().begin());
      Attribute segment = FlatSymbolRefAttr::get(module.getContext(), getFirstSegment(step));
      WalkOp::create(builder, step.getLoc(), step.getSymName(), step.getKind(),
                     builder.getArrayAttr(segment), {1});
    }
  mesh.setMeshAttr(withoutMicrobatches(mesh.getMesh()));
  for (StepOp step : steps)
    step.erase();
  setPhase(module, Phase::local);
}
