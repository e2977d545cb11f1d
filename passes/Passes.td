//===- Passes.td - one pass per decision ----------------------------------===//

#ifndef FSDP_PASSES_TD
#define FSDP_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyPhasePass : Pass<"fsdp-verify-phase", "::mlir::ModuleOp"> {
  let summary = "Check that every op of the module belongs to the phase the module says it is in";
  let description = [{
    After this pass the module holds only ops of the phase that its attribute `fsdp.phase` names (global
    when absent); the first op of another phase is an error. Runs between the stages.

    Example: `fsdp-opt --fsdp-verify-phase model.mlir`
  }];
}

#endif // FSDP_PASSES_TD
