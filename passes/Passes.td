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
    same computation, without optimizer, `fsdp.dropout` and `fsdp.checkpoint`, so that a trained program can measure
    loss and metrics on validation data.
    Modules with other steps are left as they are. Runs before differentiation.

    Example: `fsdp-opt --fsdp-derive-evaluation model.mlir`
  }];
}

def CountSamplesPass : Pass<"fsdp-count-samples", "::mlir::ModuleOp"> {
  let summary = "Let evaluation run over the samples of a batch that count";
  let description = [{
    After this pass the steps of kind `evaluate` are right for batches of which only the first samples count
    (`fsdp.sample_count`): reductions over samples are masked (`fsdp.mask_samples`), means divide by the number of
    samples that count, and sums and weights of loss and metrics that do not depend on samples (a constant weight) are
    scaled to that number. So sums and weights may be added up over the batches of a validation set of any size.
    A step in which that cannot be done (an op needs all samples of a batch, or a sum or weight is not linear in sums over
    samples: a quotient, a product or a maximum of two such sums) stays as it is, with a warning; its program takes
    validation sets of whole batches only. Runs before differentiation.

    Example: `fsdp-opt --fsdp-derive-evaluation --fsdp-count-samples model.mlir`
  }];
}

def RematerializePass : Pass<"fsdp-rematerialize", "::mlir::ModuleOp"> {
  let summary = "Decide which parts of forward backward computes again";
  let description = [{
    After this pass the blocks of a step that trains stand in `fsdp.checkpoint` regions. A block reaches from the first use of a
    run of reads of one unit (as gathers do) to that of the next run; the first and the last run, embedding and head, stand outside.
    The option `policy` says what regions are: `none` adds none; `full` makes a region of each block, which keeps its
    inputs and results; `every:K` does so of K blocks in a row, the last region having what is left; `selective` is `full`
    with the results of contractions and attention kept as well. Blocks that hold a checkpoint of the model stay as they
    are. A step without any region is a warning. Runs before differentiation.

    Example: `fsdp-opt --fsdp-rematerialize=policy=every:2 --fsdp-differentiate model.mlir`
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"full\"",
           "none, full, selective or every:K">,
  ];
}

def DifferentiatePass : Pass<"fsdp-differentiate", "::mlir::ModuleOp"> {
  let summary = "Compute gradients by reverse mode, and log loss and metrics";
  let description = [{
    After this pass each `train` step ends with backward and has one `fsdp.gradient` for each parameter that
    is not frozen, in the order in which backward completes them; loss and metrics of a step that trains are
    quotients computed in double and logged by `fsdp.output`, after backward; those of a step that evaluates are handed
    over as sum and weight by `fsdp.output_sum`. Gradients are those of the loss, sum / weight.

    A value that depends on parameters alone does not live from forward into backward: every
    backward op that uses one has its own `fsdp.read` right before it.

    The bodies of `fsdp.checkpoint` regions stand in the step. What backward needs of one and it does not keep is computed
    again, directly before the backward of the region, by ops that are backward.

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

def ShardParametersPass : Pass<"fsdp-shard-parameters", "::mlir::ModuleOp"> {
  let summary = "Decide how every parameter is stored";
  let description = [{
    After this pass every parameter has a placement. A `PATTERN:SPEC` of the option `shard` whose glob
    matches the parameter's name decides; else a placement that stands in the module stays; else the
    strategy decides: `fsdp` and `hsdp` store flat per unit over the mesh axis `fsdp` (other axes replicate), `ddp`
    replicates. What is gathered is given up after its use; `fsdp-reshard-after-forward` may say otherwise. Parameters
    with fewer than `min-shard-size` elements, and all where the mesh has no axis `fsdp`, are replicated. A pattern that matches nothing
    and two patterns that want one parameter stored in different ways are errors.

    Example: `fsdp-opt --fsdp-shard-parameters="strategy=fsdp min-shard-size=1024 shard=*.bias:replicated,head.weight:1" model.mlir`
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"fsdp\"",
           "fsdp, hsdp or ddp">,
    Option<"minShardSize", "min-shard-size", "::mlir::fsdp::Count", "::mlir::fsdp::Count{0}",
           "Elements below which a parameter is replicated">,
    ListOption<"shard", "shard", "std::string",
               "PATTERN:SPEC, with SPEC flat, replicated or the number of a dimension">,
  ];
}

def ReshardAfterForwardPass : Pass<"fsdp-reshard-after-forward", "::mlir::ModuleOp"> {
  let summary = "Decide whether gathered units are kept from forward to backward";
  let description = [{
    After this pass every placement says what the option `when` does: `always` gives a gathered unit up after forward and gathers
    it again in backward, `never` keeps it. Placements that the model states are no exception.

    Example: `fsdp-opt --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never model.mlir`
  }];
  let options = [
    Option<"when", "when", "::mlir::fsdp::Reshard", "::mlir::fsdp::Reshard::always",
           "Whether gathered units are given up after forward",
           [{::llvm::cl::values(
               clEnumValN(::mlir::fsdp::Reshard::always, "always", "gathered again in backward"),
               clEnumValN(::mlir::fsdp::Reshard::never, "never", "kept for backward"))}]>,
  ];
}

def MixedPrecisionPass : Pass<"fsdp-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "Decide which values have 16 bits, and put casts between them and the others";
  let description = [{
    After this pass placements say in which type parameters are gathered (`compute`) and gradients reduced
    (`reduce`), reads have that type, and so has what is computed from them. Parameters stay stored in f32. With
    `compute=bf16` contractions, attention and lookups work on bf16; elementwise ops on the widest type of
    their operands (a constant takes any type that it is exact in); norms on what they are given; sums, statistics
    of rows and losses are f32 or f64. Inputs keep their type and are cast where they meet a contraction. Runs
    before differentiation.

    Example: `fsdp-opt --fsdp-shard-parameters --fsdp-mixed-precision="compute=bf16 reduce=f32" model.mlir`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"compute", "compute", "std::string", "\"bf16\"",
           "f32 or bf16: of gathers and of what is computed from them">,
    Option<"reduce", "reduce", "std::string", "\"f32\"",
           "f32 or bf16: of gradients until they are reduced">,
  ];
}

def PropagatePass : Pass<"fsdp-propagate", "::mlir::ModuleOp"> {
  let summary = "Give every value of every step a sharding";
  let description = [{
    After this pass every op with tensor results has the attribute `fsdp.shardings`, one sharding for
    each result, that its operands can give it. Inputs are split along their sample dimension over the mesh axes
    `data` and `fsdp` and those of the option `batch-axes`; an axis that nothing uses is an error. Parameters are whole, constraints hold first, and the rest follows the sharding rules
    of the ops to a fixed point. `unreduced` marks the ops that leave partial sums.

    Example: `fsdp-opt --fsdp-propagate=batch-axes=node model.mlir`
  }];
  let options = [
    ListOption<"batchAxes", "batch-axes", "std::string",
               "Axes that split the batch besides data and fsdp">,
  ];
}

def PartitionPass : Pass<"fsdp-partition", "::mlir::ModuleOp"> {
  let summary = "Turn the program of one device into the program of one rank";
  let description = [{
    After this pass the module is in the local phase: storages hold the shards of parameters and optimizer states,
    steps have become segments of one program, every value has the shape that one rank holds, and every
    collective is explicit. A unit is gathered at its first use in each run of uses, its gradients are joined
    and reduced right after the last one is complete, and padding is masked before it is reduced over. A value
    that has to change its sharding otherwise is reported as a remark, with the collective and its bytes.

    Example: `fsdp-opt --fsdp-shard-parameters --fsdp-differentiate --fsdp-apply-optimizer --fsdp-propagate --fsdp-partition model.mlir`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def FusePass : Pass<"fsdp-fuse", "::mlir::ModuleOp"> {
  let summary = "Make single kernels of elementwise chains and what feeds and ends them";
  let description = [{
    After this pass elementwise ops of one shape that feed one another stand in one `nn.fused`, with the
    broadcasts, masks, constants and scalar arithmetic that feed them and, at the end, at most one
    `nn.reduce`. Where a chain goes on with the rows of a matrix product, as a bias, a GELU or a residual
    does, the `nn.einsum` begins the `nn.fused`. A value that is used inside alone is never stored; one that is used elsewhere as well
    is a further result. Nothing but cheap arithmetic is computed twice, nothing moves past a
    collective, and every op stays what it was, so results are the same bits.

    Example: `fsdp-opt --fsdp-fuse local.mlir`
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
    Option<"prefetch", "prefetch", "::mlir::fsdp::Count", /*default=*/"::mlir::fsdp::Count{1}",
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
