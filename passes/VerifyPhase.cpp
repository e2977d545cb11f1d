//===- VerifyPhase.cpp - every op belongs to the module's phase -----------===//

#include "passes/Passes.h"
#include "passes/PhaseCheck.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct VerifyPhase : fsdp::impl::VerifyPhasePassBase<VerifyPhase> {
  void runOnOperation() override {
    if (failed(getAnalysis<PhaseCheck>().result))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
