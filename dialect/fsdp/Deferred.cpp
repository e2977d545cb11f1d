//===- Deferred.cpp - updates that the next step performs -----------------===//

#include "dialect/fsdp/Deferred.h"

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::isDrain(WalkOp walk) {
  auto program = cast<ProgramOp>(walk->getParentOp());
  auto first = cast<FlatSymbolRefAttr>(walk.getSegments()[0]);
  for (SegmentOp segment : program.getOps<SegmentOp>())
    if (segment.getSymNameAttr() == first.getAttr())
      return isDrain(segment);
  return false;
}

/// Why a buffer cannot be zeroed; empty where it can.
static StringRef whyNotZeroed(BufferOp buffer) {
  if (!buffer.getPersistent())
    return "it is not persistent; let a launch write it";
  bool filled = buffer.getStorage() && buffer.getWhat() != BufferOp::accumulator;
  if (filled || buffer.getType().getTensor() == getStepStateType(buffer.getContext()))
    return "the driver fills it";
  return "";
}

LogicalResult mlir::fsdp::detail::verifyDeferred(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue(), expected;
  bool fits = false;
  if (name == kDeferredAttrName) {
    expected = "an 'fsdp.optimizer_step'";
    fits = isa<OptimizerStepOp>(op);
  } else if (name == kZeroedAttrName) {
    expected = "an 'fsdp.carried' or a persistent 'fsdp.buffer'";
    fits = isa<CarriedOp, BufferOp>(op);
  } else {
    expected = "an 'fsdp.segment' of kind 'train'";
    auto segment = dyn_cast<SegmentOp>(op);
    fits = segment && segment.getKind() == StepKind::train;
  }
  if (!fits || !isa<UnitAttr>(attribute.getValue()))
    return op->emitOpError() << "has '" << name << "' " << attribute.getValue()
                             << ", expected a unit attribute on " << expected;
  auto buffer = dyn_cast<BufferOp>(op);
  if (StringRef why = buffer ? whyNotZeroed(buffer) : ""; !why.empty())
    return op->emitOpError() << "'" << buffer.getName() << "' has '" << name << "', but " << why;
  return success();
}
