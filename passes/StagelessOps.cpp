//===- StagelessOps.cpp ---------------------------------------------------===//

#include "passes/StagelessOps.h"

#include "dialect/fsdp/Structure.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Whether any rank may compute `op`, as often as needed, if it has the operands.
static bool mayBeRepeated(Operation *op) {
  if (isa<ReadOp, LoadOp, CarryLoadOp, CarryStoreOp>(op) || involvesPeers(op))
    return false;
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
    interface.getEffects(effects);
  return llvm::none_of(effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect());
  });
}

bool StagelessOps::contains(Operation *op) {
  if (auto found = known.find(op); found != known.end())
    return found->second;
  const bool result = getStructure(op) == Structure() && mayBeRepeated(op) &&
                      llvm::all_of(op->getOperands(), [&](Value operand) {
                        Operation *maker = operand.getDefiningOp();
                        return maker && contains(maker);
                      });
  known[op] = result;
  return result;
}
