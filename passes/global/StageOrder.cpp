//===- StageOrder.cpp -----------------------------------------------------===//

#include "passes/global/StageOrder.h"

#include "dialect/fsdp/Structure.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Whether `op` says its stage; the first one is that of an op with a unit and no number.
static bool saysStage(Operation *op) {
  const Structure structure = getStructure(op);
  return structure.unit || structure.stage != 0;
}

/// Adds the stages of the ops of `step` to `used`.
static LogicalResult verifyStep(StepOp step, llvm::SmallBitVector &used) {
  const WalkResult walked = step.walk([&](Operation *op) -> WalkResult {
    if (!saysStage(op))
      return WalkResult::advance();
    const int64_t stage = getStructure(op).stage;
    if (stage >= static_cast<int64_t>(used.size()))
      return op->emitOpError() << "has stage " << stage << ", expected stages below " << used.size()
                               << ", the number that the module has";
    used.set(static_cast<unsigned>(stage));
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || !saysStage(maker) || getStructure(maker).stage <= stage)
        continue;
      InFlightDiagnostic diagnostic =
          op->emitOpError() << "of stage " << stage << " uses a value of stage "
                            << getStructure(maker).stage
                            << ", which is computed later; give it that stage or a later one";
      diagnostic.attachNote(maker->getLoc()) << "the value is made here";
      return diagnostic;
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult mlir::fsdp::verifyStages(ModuleOp module) {
  auto stages = module->getAttrOfType<IntegerAttr>(kStagesAttrName);
  if (!stages)
    return success();
  constexpr int64_t most = int64_t(1) << 20;
  if (stages.getInt() < 1 || stages.getInt() > most)
    return module.emitError() << "the module has " << stages.getInt() << " stages, expected 1 to "
                              << most;
  for (auto step : module.getOps<StepOp>()) {
    llvm::SmallBitVector used(static_cast<unsigned>(stages.getInt()));
    if (failed(verifyStep(step, used)))
      return failure();
    if (const int empty = used.flip().find_first(); empty >= 0 && step.getKind() == StepKind::train)
      return step.emitOpError() << "'" << step.getSymName() << "' has no op of stage " << empty
                                << " of " << stages.getInt()
                                << "; give each stage a unit, or the module fewer stages";
  }
  return success();
}
