//===- StepStateAccess.cpp ------------------------------------------------===//

#include "dialect/fsdp/StepStateAccess.h"

#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::fsdp;

bool StepStateAccess::conflictsWith(const StepStateAccess &other) const {
  auto touch = [](ArrayRef<StepStateBytes> written, ArrayRef<StepStateBytes> others) {
    return llvm::any_of(written, [&](StepStateBytes bytes) {
      return llvm::any_of(others, [&](StepStateBytes theirs) { return bytes.overlaps(theirs); });
    });
  };
  return touch(writes, other.reads) || touch(writes, other.writes) || touch(reads, other.writes);
}

static constexpr StepStateBytes stateBytes{0, limits::kStepStateBytes};

bool StepStateAccess::writesState() const {
  return llvm::any_of(writes, [](StepStateBytes bytes) { return bytes.overlaps(stateBytes); });
}

/// The entry of the notes of updates on which `op` has an effect.
static StepStateBytes getNotes(Operation *op) {
  constexpr int64_t begin = limits::kStepStateBytes, size = limits::kBadGradientBytes;
  auto update = dyn_cast<OptimizerStepOp>(op);
  if (!update)
    return {begin, begin + static_cast<int64_t>(limits::kBadGradientsBytes)};
  return update.getDeferred() ? StepStateBytes{begin + size, begin + 2 * size}
                              : StepStateBytes{begin, begin + size};
}

StepStateAccess mlir::fsdp::getStepStateAccess(ArrayRef<Operation *> ops) {
  StepStateAccess access;
  auto add = [](SmallVectorImpl<StepStateBytes> &to, StepStateBytes bytes) {
    if (!llvm::is_contained(to, bytes))
      to.push_back(bytes);
  };
  for (Operation *op : ops) {
    if (!isa<FSDPDialect>(op->getDialect()))
      continue; // ops of other dialects do not know these resources
    SmallVector<MemoryEffects::EffectInstance> effects;
    if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
      interface.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      const bool isState = isa<StepStateResource>(effect.getResource());
      if (!isState && !isa<BadGradientResource>(effect.getResource()))
        continue;
      const StepStateBytes bytes = isState ? stateBytes : getNotes(op);
      add(isa<MemoryEffects::Write>(effect.getEffect()) ? access.writes : access.reads, bytes);
    }
  }
  return access;
}

StepStateAccess mlir::fsdp::getStepStateAccess(LaunchOp launch) {
  SmallVector<Operation *> ops;
  for (Operation &op : launch.getBody().front())
    ops.push_back(&op);
  return getStepStateAccess(ops);
}
