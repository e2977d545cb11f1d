//===- DeriveEvaluation.cpp - a step that only measures -------------------===//

#include "passes/Passes.h"
#include "passes/global/CheckpointRegions.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DERIVEEVALUATIONPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct DeriveEvaluation : fsdp::impl::DeriveEvaluationPassBase<DeriveEvaluation> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto steps = llvm::to_vector(module.getOps<StepOp>());
    if (steps.size() != 1 || steps.front().getKind() != StepKind::train)
      return;
    StepOp train = steps.front();
    constexpr StringLiteral name = "evaluate";
    if (Operation *taken = SymbolTable(module).lookup(name)) {
      train.emitOpError("cannot derive its evaluation: the symbol '")
          << name << "' is already used; rename it or write the evaluation step";
      taken->emitRemark("used here");
      return signalPassFailure();
    }
    OpBuilder builder(train);
    builder.setInsertionPointAfter(train);
    auto evaluate = cast<StepOp>(builder.clone(*train));
    evaluate.setSymName(name);
    evaluate.setKind(StepKind::evaluate);
    evaluate.removeOptimizerAttr();
    // Without backward there is no value to keep.
    for (auto checkpoint : llvm::make_early_inc_range(evaluate.getOps<CheckpointOp>()))
      inlineCheckpoint(checkpoint);
    // Minima are not sums over batches.
    evaluate.walk([](Operation *op) {
      if (isa<PrintOp, CheckOp>(op))
        op->erase();
    });
    // An evaluation measures the whole model, independent of the seed.
    evaluate.walk([](DropoutOp dropout) {
      dropout.getResult().replaceAllUsesWith(dropout.getInput());
      dropout.erase();
    });
  }
};
} // namespace
