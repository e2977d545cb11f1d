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

def SchedulePass : Pass<"fsdp-schedule", "::mlir::ModuleOp"> {
  let summary = "Turn local IR into launches on streams that wait for one another";
  let description = [{
    After this pass the module is in the scheduled phase: values are `fsdp.buffer`s without offsets, ops stand in
    `fsdp.launch`es in issue order. Inputs come first; the gather of a unit is issued as soon as all units used
    before it but the last `prefetch` are done with, so that at most `prefetch` + 1 are whole
    at once; gradients before their reduction keep the same budget. Every wait between streams that
    the accesses ask for is there, except those that other waits imply.

    Example: `fsdp-opt --fsdp-schedule=prefetch=0 local.mlir`
  }];
  let options = [
    Option<"prefetch", "prefetch", "int", /*default=*/"1",
           "units gathered ahead of the one in use; 0 gathers each when the last is done with">];
}

def PlanMemoryPass : Pass<"fsdp-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    After this pass every `fsdp.buffer` has an offset and every program the size of its arena in bytes. Persistent
    buffers stand first; two others share bytes only where all accesses of one are complete before any of
    the other starts, or where an elementwise launch writes over an operand whose life ends there.

    Example: `fsdp-opt --fsdp-schedule --fsdp-plan-memory local.mlir`
  }];
}

def VerifySchedulePass : Pass<"fsdp-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Prove that a schedule has no race, no deadlock and no overlap in memory";
  let description = [{
    After this pass: conflicting accesses are ordered by streams and waits; nothing is read that was not written
    or was overwritten since; waits go round in no circle, on one rank or between roles; all
    ranks issue the same collectives in one order on each communicator; and, once memory is planned, every
    buffer is inside the arena and live ones do not overlap. Each error names both launches.

    Example: `fsdp-opt --fsdp-verify-schedule scheduled.mlir`
  }];
}

#endif // FSDP_PASSES_TD
