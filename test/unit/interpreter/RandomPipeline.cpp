//===- RandomPipeline.cpp - random stages of a random step ----------------===//

#include "RandomModule.h"

#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Whether `op` may be the only one of a unit: no pass removes it.
static bool canBeUnit(Operation &op) {
  if (auto checkpoint = dyn_cast<CheckpointOp>(op))
    return llvm::any_of(checkpoint.getBody().front(), canBeUnit);
  return !isa<InputOp, ReadOp, LossOp, MetricOp, SampleCountOp, ConstraintOp, DropoutOp>(op) &&
         op.getNumResults() != 0 && !op.hasTrait<OpTrait::ConstantLike>();
}

/// Gives the ops of `step` units, consecutive ones of each, and some ops none: `units` runs, of
/// which two may have one name.
static void nameUnits(StepOp step, int64_t units, std::mt19937_64 &random) {
  SmallVector<Operation *> ops;
  for (Operation &op : step.getBody().front())
    if (canBeUnit(op))
      ops.push_back(&op);
  // The first op of each run.
  SmallVector<int64_t> begins = llvm::to_vector(llvm::seq<int64_t>(1, ops.size()));
  std::shuffle(begins.begin(), begins.end(), random);
  begins.resize(units - 1);
  llvm::sort(begins);
  const bool endsAlike = units > 2 && random() % 2 == 0;
  int64_t run = 0;
  for (auto [index, op] : llvm::enumerate(ops)) {
    const bool isFirst = index == 0 || llvm::is_contained(begins, static_cast<int64_t>(index));
    if (llvm::is_contained(begins, static_cast<int64_t>(index)))
      ++run;
    if (!isFirst && random() % 100 < 10)
      continue;
    const int64_t name = endsAlike && run == units - 1 ? 0 : run;
    auto unit = StringAttr::get(op->getContext(), "part" + std::to_string(name));
    op->walk([&](Operation *inner) {
      if (!isa<ReadOp, YieldOp, CheckpointOp>(inner) && !inner->hasTrait<OpTrait::ConstantLike>())
        setStructure(inner, getStructure(inner).in(unit));
    });
  }
}

bool mlir::fsdp::addPipeline(ModuleOp module, std::mt19937_64 random, int64_t mostRanks,
                             PipelineOptions &options) {
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  MeshOp meshOp = getMeshOp(module);
  MeshAttr before = meshOp.getMesh();
  const int64_t most = std::min<int64_t>(mostRanks / before.getNumRanks(), 4);
  auto steps = llvm::to_vector(module.getOps<StepOp>());
  if (most < 2 || steps.size() != 1)
    return false;
  const int64_t ranks = between(2, most);
  int64_t ops = 0;
  for (Operation &op : steps.front().getBody().front())
    ops += canBeUnit(op);
  // Most in microbatches, which may be refused.
  if (options.accumulate == 1 && between(0, 9) < 7)
    options.accumulate = between(2, 6);
  constexpr const char *schedules[] = {"1f1b", "gpipe", "zb", "interleaved:2", "interleaved:3"};
  options.pipelineSchedule = schedules[between(0, 4)];
  int64_t chunks = 1;
  if (StringRef(options.pipelineSchedule).starts_with("interleaved")) {
    chunks = options.pipelineSchedule.back() - '0';
    options.accumulate = llvm::alignTo(options.accumulate, ranks);
    if (ops < ranks * chunks) {
      options.pipelineSchedule = "1f1b";
      chunks = 1;
    }
  }
  const int64_t stages = ranks * chunks;
  if (ops < stages)
    return false;
  const int64_t units = std::min(ops, between(stages, stages + 4));
  nameUnits(steps.front(), units, random);
  if (between(0, 1)) {
    SmallVector<int64_t> sizes(stages, 1);
    for (int64_t left = units - stages; left > 0; --left)
      ++sizes[between(0, stages - 1)];
    options.stages =
        llvm::join(llvm::map_range(sizes, [](int64_t n) { return std::to_string(n); }), ",");
  }
  SmallVector<StringAttr> names(before.getAxisNames());
  SmallVector<int64_t> sizes(before.getAxisSizes()), devices;
  const int64_t place = between(0, static_cast<int64_t>(names.size()));
  names.insert(names.begin() + place, StringAttr::get(module.getContext(), "pipeline"));
  sizes.insert(sizes.begin() + place, ranks);
  if (!before.getDevices().empty()) {
    devices = llvm::to_vector(llvm::seq<int64_t>(before.getNumRanks() * ranks));
    std::shuffle(devices.begin(), devices.end(), random);
    if (llvm::is_sorted(devices))
      std::swap(devices.front(), devices.back());
  }
  meshOp.setMeshAttr(MeshAttr::get(module.getContext(), names, sizes, devices));
  return true;
}
