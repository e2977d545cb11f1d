//===- CheckpointRegions.cpp ----------------------------------------------===//

#include "passes/global/CheckpointRegions.h"
#include "dialect/fsdp/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/LaunchNames.h"
#include "passes/global/Recompute.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::inlineCheckpoint(CheckpointOp checkpoint) {
  Block &body = checkpoint.getBody().front();
  Operation *yield = body.getTerminator();
  checkpoint.replaceAllUsesWith(yield->getOperands());
  yield->erase();
  Block *outer = checkpoint->getBlock();
  outer->getOperations().splice(checkpoint->getIterator(), body.getOperations());
  checkpoint.erase();
}

static bool isContraction(Operation *op) {
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel && kernel.isContraction();
}

CheckpointRegions::CheckpointRegions(StepOp step) {
  for (auto checkpoint :
       llvm::make_early_inc_range(step.getBody().front().getOps<CheckpointOp>())) {
    const bool selective = checkpoint.getPolicy() == CheckpointPolicy::selective;
    Region &region = regions.emplace_back();
    Block &body = checkpoint.getBody().front();
    for (Operation &op : body.without_terminator()) {
      for (Value operand : op.getOperands())
        if (operand.getParentBlock() != &body)
          kept.insert(operand);
      if (op.hasTrait<OpTrait::ConstantLike>())
        continue;
      region.ops.push_back(&op);
      regionOf[&op] = regions.size() - 1;
      if (selective && isContraction(&op))
        kept.insert_range(op.getResults());
    }
    kept.insert_range(body.getTerminator()->getOperands());
    inlineCheckpoint(checkpoint);
  }
}

/// A temporary op that marks a position while other ops are created around it.
static Operation *createMark(OpBuilder &builder, Location loc) {
  auto type = RankedTensorType::get({}, builder.getI1Type());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, false));
}

void CheckpointRegions::beginBackward(Operation *op, OpBuilder &builder) {
  auto it = regionOf.find(op);
  Region *next = it == regionOf.end() ? nullptr : &regions[it->second];
  if (next == current)
    return;
  if (current)
    current->end = createMark(builder, op->getLoc());
  current = next && !next->begin ? next : nullptr;
  if (current)
    current->begin = createMark(builder, op->getLoc());
}

void CheckpointRegions::recompute(const Region &region, const DenseSet<Value> &parameterOnly,
                                  llvm::function_ref<void(Operation *)> renewReads) {
  DenseSet<Operation *> again;
  SmallVector<Operation *> pending;
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && !kept.contains(value) && !parameterOnly.contains(value) && regionOf.contains(op) &&
        again.insert(op).second)
      pending.push_back(op);
  };
  for (OpOperand *use : region.uses)
    need(use->get());
  while (!pending.empty())
    for (Value operand : pending.pop_back_val()->getOperands())
      need(operand);

  OpBuilder builder(region.begin->getBlock(), std::next(region.begin->getIterator()));
  IRMapping mapping;
  // Ops without a stage are computed again by that of the region.
  int64_t stage = 0;
  for (Operation *op : region.ops)
    stage = std::max(stage, getStructure(op).stage);
  for (Operation *op : region.ops) {
    if (!again.contains(op))
      continue;
    Operation *clone = builder.clone(*op, mapping);
    // Only some of several results may be kept.
    for (Value result : op->getResults())
      if (kept.contains(result))
        mapping.erase(result);
    Structure structure = getStructure(op).again();
    structure.stage = stage;
    setStructure(clone, structure);
    if (std::string name = getLocationName(op->getLoc()); !name.empty())
      clone->setLoc(NameLoc::get(builder.getStringAttr(name + ".again"), op->getLoc()));
    renewReads(clone);
  }
  for (OpOperand *use : region.uses)
    use->set(mapping.lookup(use->get()));
}

void CheckpointRegions::renewKept(const Region &region, const DenseSet<Value> &parameterOnly) {
  MeshOp mesh = getMeshOp(region.begin);
  if (!mesh)
    return;
  OpBuilder builder(region.begin);
  IRMapping views;
  auto viewOf = [&](Value value, Operation *user) -> Value {
    if (Value known = views.lookupOrNull(value))
      return known;
    auto type = cast<RankedTensorType>(value.getType());
    auto open = ShardingAttr::getReplicated(
        builder.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()), type.getRank(),
        /*open=*/true);
    Location loc = value.getLoc();
    if (std::string name = getLocationName(loc); !name.empty())
      loc = NameLoc::get(builder.getStringAttr(name + ".again"), loc);
    auto view = ConstraintOp::create(builder, loc, type, value, open, DenseI64ArrayAttr(),
                                     /*sequence_parallel=*/false, ArrayAttr());
    setStructure(view, getStructure(user).again());
    views.map(value, view.getResult());
    return view.getResult();
  };
  for (Operation *op = region.begin->getNextNode(); op && op != region.end; op = op->getNextNode())
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (!isCheap(op) && kept.contains(value) && !parameterOnly.contains(value) &&
          !isa_and_present<InputOp>(value.getDefiningOp()) &&
          isa<FloatType>(getElementTypeOrSelf(value.getType())))
        operand.set(viewOf(value, op));
    }
}

void CheckpointRegions::recompute(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
                                  llvm::function_ref<void(Operation *)> renewReads) {
  if (regions.empty())
    return;
  for (Operation *op = firstBackward; op; op = op->getNextNode())
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      auto it = producer ? regionOf.find(producer) : regionOf.end();
      if (it == regionOf.end() || kept.contains(operand.get()))
        continue;
      regions[it->second].uses.push_back(&operand);
    }
  for (const Region &region : regions)
    if (region.begin)
      recompute(region, parameterOnly, renewReads);
  for (const Region &region : regions)
    if (region.begin) {
      renewKept(region, parameterOnly);
      region.begin->erase();
      if (region.end)
        region.end->erase();
    }
}
