//===- SequenceParallel.cpp - whether a residual stream is split ----------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SEQUENCEPARALLELPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct SequenceParallel : fsdp::impl::SequenceParallelPassBase<SequenceParallel> {
  using Base::Base;

  void runOnOperation() override;

private:
  /// Whether the marks of this step stay: of training, and of an evaluation of whole samples.
  bool applies(StepOp step) const {
    return mode != "off" &&
           (step.getKind() == StepKind::train || step.getKind() == StepKind::evaluate);
  }
  bool stays(ConstraintOp mark, StepOp step);
};
} // namespace

bool SequenceParallel::stays(ConstraintOp mark, StepOp step) {
  if (!applies(step))
    return false;
  MeshAttr mesh = getMesh(step);
  auto type = cast<RankedTensorType>(mark.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    SmallVector<StringAttr> axes = mark.getSharding().getAxes(dim);
    const int64_t parts = mesh.getSize(axes), positions = type.getDimSize(dim);
    if (axes.empty())
      continue;
    if (parts == 1)
      return false;
    if (mode == "on" || positions % parts == 0)
      return true;
    if (step.getKind() == StepKind::train)
      mark.emitRemark() << "norms and residual sums are computed whole on every rank: " << positions
                        << " positions are not a multiple of "
                        << llvm::join(spellAxes(mesh, axes), "+") << "=" << parts
                        << "; --sequence-parallel=on splits them with padding";
  }
  return false;
}

void SequenceParallel::runOnOperation() {
  ModuleOp module = getOperation();
  if (mode != "auto" && mode != "on" && mode != "off") {
    module.emitError() << "--sequence-parallel got '" << mode << "', expected auto, on or off";
    return signalPassFailure();
  }
  bool isMarked = false;
  for (StepOp step : module.getOps<StepOp>()) {
    SmallVector<ConstraintOp> marks;
    step.walk([&](ConstraintOp constraint) {
      if (constraint.getSequenceParallel())
        marks.push_back(constraint);
    });
    isMarked |= !marks.empty();
    for (ConstraintOp mark : marks) {
      if (stays(mark, step))
        continue;
      mark.getResult().replaceAllUsesWith(mark.getInput());
      mark.erase();
    }
  }
  // Of a model for several meshes, plans without the axis have lost the marks with it.
  const bool isSplit = llvm::any_of(module.getOps<MeshOp>(), [](MeshOp mesh) {
    return llvm::any_of(mesh.getMesh().getAxisNames(), [&](StringAttr axis) {
      return getAxisRole(axis).splitsLayers && mesh.getMesh().getAxisSize(axis) > 1;
    });
  });
  if (mode == "on" && isSplit && !isMarked) {
    module.emitError() << "--sequence-parallel got 'on', but the model marks no positions; write "
                          "sequenceParallel(x) on its residual stream, or leave the option out";
    signalPassFailure();
  }
}
