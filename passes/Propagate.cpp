//===- Propagate.cpp - give every value a sharding ------------------------===//

#include "passes/Passes.h"
#include "passes/StepShardings.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct Propagate : fsdp::impl::PropagatePassBase<Propagate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StepOp step : module.getOps<StepOp>()) {
      if (!getMeshOp(step)) {
        step.emitOpError() << "is in a module without a mesh; declare one, for one rank "
                              "'fsdp.mesh @mesh <[\"fsdp\"=1]>'";
        return signalPassFailure();
      }
      FailureOr<StepShardings> shardings = StepShardings::propagate(step);
      if (failed(shardings) || failed(shardings->verify()))
        return signalPassFailure();
      shardings->write();
    }
  }
};
} // namespace
