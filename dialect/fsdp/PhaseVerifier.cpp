//===- PhaseVerifier.cpp - where ops may stand ----------------------------===//

#include "dialect/fsdp/FSDPDialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The phases in which `op` is allowed; empty for an op without a phase.
static SmallVector<Phase> allowedPhases(Operation *op) {
  SmallVector<Phase> phases;
  if (op->hasTrait<InGlobalPhase>())
    phases.push_back(Phase::global);
  if (op->hasTrait<InLocalPhase>())
    phases.push_back(Phase::local);
  if (op->hasTrait<InScheduledPhase>())
    phases.push_back(Phase::scheduled);
  return phases;
}

/// The same as allowedPhases, without a list: several passes call this for every op.
static bool mayStandIn(Operation *op, Phase phase) {
  const bool global = op->hasTrait<InGlobalPhase>(), local = op->hasTrait<InLocalPhase>(),
             scheduled = op->hasTrait<InScheduledPhase>();
  return (phase == Phase::global && global) || (phase == Phase::local && local) ||
         (phase == Phase::scheduled && scheduled) || (!global && !local && !scheduled);
}

/// The containers in which `op` is allowed, for an error message.
static std::string describeContainers(Operation *op) {
  if (isa<BufferOp, SubviewOp>(op))
    return "a program or a segment";
  if (isa<LaunchOp>(op))
    return "a segment";
  SmallVector<StringRef> names;
  for (Phase phase : allowedPhases(op))
    names.push_back(phase == Phase::global  ? "a step"
                    : phase == Phase::local ? "a segment"
                                            : "a launch");
  return llvm::join(names, " or ");
}

static bool mayHold(Operation *container, Operation *op) {
  bool place = isa<BufferOp, SubviewOp>(op);
  if (isa<ModuleOp>(container))
    return false;
  if (isa<ProgramOp>(container))
    return place;
  if (isa<StepOp, CheckpointOp, ManualOp>(container))
    return op->hasTrait<InGlobalPhase>();
  if (isa<SegmentOp>(container))
    return op->hasTrait<InLocalPhase>() || place || isa<LaunchOp>(op);
  if (isa<LaunchOp>(container))
    return op->hasTrait<InScheduledPhase>() && !place && !isa<LaunchOp>(op);
  return true;
}

LogicalResult mlir::fsdp::detail::verifyContainer(Operation *op) {
  // Their parents are fixed.
  if (isa<CarriedOp, StepOp, ProgramOp, WalkOp, EventOp, SegmentOp>(op))
    return success();
  Operation *container = op->getParentOp();
  while (isa_and_nonnull<nn::FusedOp>(container))
    container = container->getParentOp();
  if (!container || mayHold(container, op))
    return success();
  return op->emitOpError() << "is in '" << container->getName() << "', expected "
                           << describeContainers(op);
}

/// An attention has a place for each rank of the axes that share its sequence.
template <typename Op> static LogicalResult verifyPlaces(Op op) {
  if (!op.getAt())
    return success();
  MeshOp mesh = getMeshOp(op);
  int64_t ranks = 1;
  for (StringAttr axis : getAxisNames(*op.getOver())) {
    if (!mesh || mesh.getMesh().getAxisIndex(axis) < 0)
      return op.emitOpError() << "has queries over '" << axis.getValue()
                              << "', expected an axis of the module's mesh";
    ranks *= mesh.getMesh().getAxisSize(axis);
  }
  if (static_cast<int64_t>(op.getAt()->size()) != ranks)
    return op.emitOpError() << "has " << op.getAt()->size() << " places, expected one for each of "
                            << ranks << " ranks";
  return success();
}

LogicalResult mlir::fsdp::verifyPhase(ModuleOp module, Phase phase) {
  WalkResult result = module.walk([&](Operation *op) {
    if (!mayStandIn(op, phase)) {
      SmallVector<Phase> allowed = allowedPhases(op);
      op->emitOpError() << "belongs to the "
                        << llvm::join(llvm::map_range(allowed, stringifyPhase), " or ")
                        << " phase, but the module is in the " << stringifyPhase(phase) << " phase";
      return WalkResult::interrupt();
    }
    LogicalResult places = llvm::TypeSwitch<Operation *, LogicalResult>(op)
                               .Case<nn::AttentionOp, nn::AttentionGradOp, nn::AttentionBiasGradOp>(
                                   [](auto attention) { return verifyPlaces(attention); })
                               .Default([](Operation *) { return success(); });
    if (failed(places))
      return WalkResult::interrupt();
    // Ops that have no phase compute; in the scheduled phase they stand in launches.
    bool computes =
        !isa<BufferOp, SubviewOp, LaunchOp>(op) && isa_and_nonnull<SegmentOp>(op->getParentOp());
    if (phase == Phase::scheduled && computes) {
      op->emitOpError() << "is outside 'fsdp.launch' in the scheduled phase; put it into a launch";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
