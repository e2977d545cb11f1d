//===- SegmentStages.cpp - the stage of each op of a segment --------------===//

#include "passes/local/stages/SegmentStages.h"

#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

ArrayRef<Operation *> SegmentStages::opsOf(StagePart part) const {
  const auto &parts = part.backward ? backward : forward;
  return part.stage < static_cast<int64_t>(parts.size()) ? ArrayRef<Operation *>(parts[part.stage])
                                                         : ArrayRef<Operation *>();
}

LogicalResult SegmentStages::place(Operation *op, CarriedStages &carried) {
  const Structure structure = getStructure(op);
  bool ofUpdate =
      structure.direction == Direction::update || isa<OutputOp, OutputSumOp, NextMicrobatchOp>(op);
  StagePart part{structure.stage, structure.direction == Direction::backward};
  // Operands: a value of backward can only be used there, and by its stage or earlier ones.
  std::optional<int64_t> latest, earliest;
  for (Value operand : op->getOperands()) {
    const StagePlace from = of(operand.getDefiningOp());
    ofUpdate |= from.kind == StagePlace::update;
    if (from.kind != StagePlace::part)
      continue;
    auto &limit = from.of.backward ? earliest : latest;
    limit = !limit             ? from.of.stage
            : from.of.backward ? std::min(*limit, from.of.stage)
                               : std::max(*limit, from.of.stage);
  }
  if (auto load = dyn_cast<CarryLoadOp>(op)) {
    auto known = carried.find(load.getCarried());
    if (known == carried.end() || !stored.contains(load.getCarried()))
      ofUpdate = true; // reads a tensor that earlier segments have stored
    else
      part = known->second;
  }
  // The shards of a weight that several stages use are added up when each has its sum.
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  if (kernel && kernel.isElementwise() && op->hasAttr(FSDPDialect::reducesAttrName)) {
    llvm::SmallSetVector<int64_t, 2> terms;
    for (Value operand : op->getOperands())
      if (const StagePlace from = of(operand.getDefiningOp()); from.kind == StagePlace::part)
        terms.insert(from.of.stage);
    ofUpdate |= terms.size() > 1;
  }
  if (ofUpdate) {
    places[op] = {StagePlace::update};
    updates.push_back(op);
    return success();
  }
  if (stageless.contains(op))
    return success();
  if (earliest) {
    part.backward = true;
    part.stage = structure.direction == Direction::backward || structure.stage != 0
                     ? std::min(part.stage, *earliest)
                     : *earliest;
  } else if (latest && !part.backward) {
    part.stage = std::max(part.stage, *latest);
  }
  places[op] = {StagePlace::part, part};
  auto &parts = part.backward ? backward : forward;
  numStages = std::max(numStages, part.stage + 1);
  if (static_cast<int64_t>(parts.size()) < numStages)
    parts.resize(numStages);
  parts[part.stage].push_back(op);
  if (auto store = dyn_cast<CarryStoreOp>(op)) {
    auto [known, isNew] = carried.try_emplace(store.getCarried(), part);
    if (!isNew && known->second.stage != part.stage)
      return store.emitOpError() << "carries '" << store.getCarried() << "' in stage " << part.stage
                                 << ", expected stage " << known->second.stage
                                 << " as in another segment";
  }
  return success();
}

FailureOr<SegmentStages> SegmentStages::get(SegmentOp segment, CarriedStages &carried) {
  SegmentStages stages;
  for (auto store : segment.getOps<CarryStoreOp>())
    stages.stored.insert(store.getCarried());
  for (Operation &op : segment.getBody().front())
    if (failed(stages.place(&op, carried)))
      return failure();
  return stages;
}
