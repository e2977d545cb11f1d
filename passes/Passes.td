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

def DeriveEvaluationPass : Pass<"fsdp-derive-evaluation", "::mlir::ModuleOp"> {
  let summary = "Give a module that only trains a step that evaluates";
  let description = [{
    After this pass a module whose only step is of kind `train` has a second step `@evaluate` with the
    same computation and no optimizer, so that a trained program can measure loss and metrics on validation data.
    Modules with other steps are left as they are. Runs before differentiation.

    Example: `fsdp-opt --fsdp-derive-evaluation model.mlir`
  }];
}

def DifferentiatePass : Pass<"fsdp-differentiate", "::mlir::ModuleOp"> {
  let summary = "Compute gradients by reverse mode, and log loss and metrics";
  let description = [{
    After this pass each `train` step ends with backward and has one `fsdp.gradient` for each parameter that
    is not frozen, in the order in which backward completes them; loss and metrics of every step are
    quotients computed in double and logged by `fsdp.output`, after backward. Gradients are
    those of the loss, sum / weight.

    A value that depends on parameters alone does not live from forward into backward: every
    backward op that uses one has its own `fsdp.read` right before it.

    Example: `fsdp-opt --fsdp-differentiate model.mlir`
  }];
}

def ApplyOptimizerPass : Pass<"fsdp-apply-optimizer", "::mlir::ModuleOp"> {
  let summary = "Turn gradients into updates of the parameters";
  let description = [{
    After this pass each `fsdp.gradient` is a `fsdp.update` at the learning rate of the step,
    scaled by clipping where the optimizer asks for it; norm and rate are logged, and a loss or
    norm that is not finite skips every update. `fsdp.advance` ends the step.

    Example: `fsdp-opt --fsdp-differentiate --fsdp-apply-optimizer model.mlir`
  }];
}

#endif // FSDP_PASSES_TD
