//===- VerifyPhase.cpp - every op belongs to the module's phase -----------===//

#include "passes/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// The phases in which `op` may stand, for an error message.
static std::string allowedPhases(Operation *op) {
  SmallVector<StringRef> names;
  if (op->hasTrait<InGlobalPhase>())
    names.push_back("global");
  if (op->hasTrait<InLocalPhase>())
    names.push_back("local");
  if (op->hasTrait<InScheduledPhase>())
    names.push_back("scheduled");
  return llvm::join(names, " or ");
}

static bool belongsTo(Operation *op, Phase phase) {
  switch (phase) {
  case Phase::global:
    return op->hasTrait<InGlobalPhase>();
  case Phase::local:
    return op->hasTrait<InLocalPhase>();
  case Phase::scheduled:
    // The body of a launch is local IR on tensors.
    return op->hasTrait<InScheduledPhase>();
  }
  llvm_unreachable("unknown phase");
}

namespace {
struct VerifyPhase : fsdp::impl::VerifyPhasePassBase<VerifyPhase> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Phase phase = getPhase(module);
    WalkResult result = module.walk([&](Operation *op) {
      std::string allowed = allowedPhases(op);
      if (!allowed.empty() && !belongsTo(op, phase)) {
        op->emitOpError() << "belongs to the " << allowed << " phase, but the module is in the "
                          << stringifyPhase(phase) << " phase";
        return WalkResult::interrupt();
      }
      // Compute ops have no phase; in the scheduled phase they stand in launches.
      bool compute = allowed.empty() && op->getParentOp() && isa<SegmentOp>(op->getParentOp());
      if (phase == Phase::scheduled && compute) {
        op->emitOpError() << "computes outside a launch in the scheduled phase";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
