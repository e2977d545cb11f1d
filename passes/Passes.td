//===- Passes.td - one pass per decision ----------------------------------===//

#ifndef FSDP_PASSES_TD
#define FSDP_PASSES_TD

include "mlir/Pass/PassBase.td"

// A pass depends on the dialects whose ops it creates: nn is loaded with arith and math. Every
// module that a pass changes has ops of fsdp.
//
// Passes that need one step or one program alone are passes on `fsdp.step` or `fsdp.program`, which
// the pass manager runs in parallel; docs/design/tools.md says why the others are not.

def VerifyPhasePass : Pass<"fsdp-verify-phase", "::mlir::ModuleOp"> {
  let summary = "Check that every op of the module belongs to the phase of the module";
  let description = [{
    After this pass the module contains only ops of the phase in its attribute `fsdp.phase` (global
    if absent); the first op of another phase is an error. Runs between the stages.

    Example: `fsdp-opt --fsdp-verify-phase model.mlir`
  }];
}

def InlineManualPass : Pass<"fsdp-inline-manual", "::mlir::fsdp::StepOp"> {
  let summary = "Replace manual regions by their bodies, in local terms";
  let description = [{
    After this pass no step contains a `fsdp.manual`: in its place is its body, between a `fsdp.enter_manual` of each operand and a
    `fsdp.exit_manual` of each result. Operands are constrained to what the region takes. Where an op of the body has an invariant and a varying
    or partial operand, the invariant one goes through a `fsdp.pvary`, whose cotangent is summed over ranks. Regions inside regions and
    in checkpoints are replaced as well.

    Example: `fsdp-opt --fsdp-inline-manual model.mlir`
  }];
}

def DeriveEvaluationPass : Pass<"fsdp-derive-evaluation", "::mlir::ModuleOp"> {
  let summary = "Add an evaluation step to a module that has only a training step";
  let description = [{
    After this pass a module whose only step is of kind `train` has a second step `@evaluate` with the
    same computation, without optimizer, `fsdp.dropout` and `fsdp.checkpoint`, so that a trained program can measure
    loss and metrics on validation data.
    Modules with other steps do not change. Runs before differentiation.

    Example: `fsdp-opt --fsdp-derive-evaluation model.mlir`
  }];
}

def DeriveGenerationPass : Pass<"fsdp-derive-generation", "::mlir::ModuleOp"> {
  let summary = "Add steps that compute the scores of the next token of a text";
  let description = [{
    After this pass a module with one `evaluate` step, which computes a loss from the scores of a vocabulary for each token of its one
    input of tokens, has two steps more, derived from it. Their inputs are tokens of one sample and the positions of these
    (`dialect/fsdp/Generation.h`). `@decode` takes one token and leaves the scores of the next one in the carried tensor
    `@decode.logits`. `@prefill` takes as many tokens as divide the context and are at most `chunk`, and computes no scores. Both write
    the keys and values of their tokens into carried tensors over the whole context (`nn.write_rows`), to which
    `nn.cached_attention` attends; positions of `nn.rope` and rows of tables of positions are those of the input.
    A text is one document for an attention within documents. A model in which something other than causal attention combines positions, or anything combines samples, is refused. Runs
    after casts stand, as the kept tensors have the types of compute, and before anything is sharded.

    Example: `fsdp-opt --fsdp-derive-evaluation --fsdp-derive-generation model.mlir`
  }];
  let options = [
    Option<"chunk", "chunk", "PositiveCount", "PositiveCount{128}",
           "largest number of tokens of a prefill">,
  ];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def CountSamplesPass : Pass<"fsdp-count-samples", "::mlir::fsdp::StepOp"> {
  let summary = "Make evaluation steps correct for partial batches";
  let description = [{
    After this pass the steps of kind `evaluate` are correct for batches of which only the first samples are valid
    (`fsdp.sample_count`): reductions over samples are masked (`fsdp.mask_samples`), means divide by the number of
    valid samples, and sums and weights of loss and metrics that do not depend on samples (a constant weight) are
    scaled to that number. So sums and weights can be added over the batches of a validation set of any size.
    A step for which this is not possible (an op needs all samples of a batch, or a sum or weight is not linear in sums over
    samples: a quotient, a product or a maximum of two such sums) does not change, with a warning; its program accepts
    validation sets of full batches only. Runs before differentiation.

    Example: `fsdp-opt --fsdp-derive-evaluation --fsdp-count-samples model.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def LowerPrintsPass : Pass<"fsdp-lower-prints", "::mlir::fsdp::StepOp"> {
  let summary = "Make metrics of what a model prints and checks";
  let description = [{
    After this pass the statistics of each `fsdp.print` and `fsdp.check` are computed where it stood, by reductions in double, and are
    metrics: `NAME.min`, `NAME.max`, `NAME.mean` and `NAME.nan`, or `NAME.check`, which has the attribute `check`. A print in a
    checkpoint becomes results of it and metrics behind it. No other op changes. Runs before rematerialization and
    differentiation, and after `fsdp-derive-evaluation`, which leaves both ops out.

    Example: `fsdp-opt --fsdp-lower-prints --fsdp-differentiate model.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def SequenceParallelPass : Pass<"fsdp-sequence-parallel", "::mlir::ModuleOp"> {
  let summary = "Decide whether the positions of a residual stream are split";
  let description = [{
    A constraint with `sequence_parallel` marks the positions of a residual stream. After this pass those that stay are
    constraints like others: of training and evaluation, with `mode` `on`, or with `auto` where their axes divide the
    positions, else with a remark. `off` removes all; where the axes have size 1 there is nothing to split. `on` refuses
    a model without marks on a mesh with the axis `tensor`. Propagation does the rest: norms, residual sums and dropout are split as the stream is, whose
    axes have a lower priority than those of weights, so that products gather their input or leave partial sums, which a
    reduce-scatter completes. Runs before differentiation, which copies constraints to cotangents.

    Example: `fsdp-opt --fsdp-sequence-parallel=mode=off model.mlir`
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"auto\"", "auto, on or off">,
  ];
}

def ContextParallelPass : Pass<"fsdp-context-parallel", "::mlir::ModuleOp"> {
  let summary = "Split sequences over the mesh axis context";
  let description = [{
    Where the mesh has an axis `context` of more than one position, constraints split the positions of training and
    evaluation over it: of inputs, of the residual stream that `sequence_parallel` marks (before the axes of the mark), of what makes
    the operands of attention and of what uses its result. Attention itself is split by heads, with all positions on each rank, so that
    partitioning moves its operands and its result by all-to-alls, or, with `gather` and `ring`, by positions, as its attribute `exchange`
    then says; rotations of its operands take the numbers of positions. `auto` takes heads where the ranks divide them and their groups,
    else `ring`, or `gather` where there are documents or a bias. A table of positions that is added to each sample becomes a lookup
    of rows. Operands that are computed from inputs alone and whose positions an op needs whole, such as the ids of documents, are
    computed from whole inputs, which each rank has.

    With `order` zigzag each rank has two chunks of positions, one from the beginning and one from the end, so that causal attention by
    `gather` or `ring` computes as many scores on each: inputs, what is computed from whole inputs, and the numbers of positions that rotations and lookups
    take are permuted behind where they are made, and attention knows it by its attribute `zigzag`. `auto` takes it where the busiest rank
    then computes less and nothing else depends on the order; else positions stay contiguous, and a remark names the reason.

    Positions are dimension 1 of tokens, the marked dimension, and all dimensions that ops run over together with these. The last of
    positions that the axis does not divide are padding, with a remark. Refuses a model without positions and attention that the chosen kind does not take.
    Runs before differentiation, which copies constraints to cotangents.

    Example: `fsdp-opt --fsdp-context-parallel=attention=all-to-all model.mlir`
  }];
  let options = [
    Option<"attention", "attention", "std::string", "\"auto\"", "auto, all-to-all, gather or ring">,
    Option<"order", "order", "std::string", "\"auto\"", "auto, zigzag or contiguous">,
  ];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def RematerializePass : Pass<"fsdp-rematerialize", "::mlir::ModuleOp"> {
  let summary = "Decide which parts of forward backward computes again";
  let description = [{
    After this pass the blocks of a step that trains are in `fsdp.checkpoint` regions. A block reaches from the first use of a
    run of reads of one unit (as gathers do) to that of the next run; the first and the last run, embedding and head, are outside.
    The option `policy` chooses the regions: `none` adds none; `full` makes a region of each block, which keeps its
    inputs and results; `every:K` does so of K blocks in a row, the last region having what is left; `selective` is `full`
    with the results of contractions and attention kept as well. Blocks with a checkpoint of the model do not change. A
    step without any region is a warning. Runs before differentiation.

    Example: `fsdp-opt --fsdp-rematerialize=policy=every:2 --fsdp-differentiate model.mlir`
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"full\"",
           "none, full, selective or every:K">,
  ];
}

def DifferentiatePass : Pass<"fsdp-differentiate", "::mlir::fsdp::StepOp"> {
  let summary = "Compute gradients by reverse mode, and log loss and metrics";
  let description = [{
    After this pass each `train` step contains backward and has one `fsdp.gradient` for each parameter that
    is not frozen, in the order in which backward completes them; loss and metrics of a training step are
    quotients, computed in double and logged by `fsdp.output`, after backward; those of an evaluation step are
    output as sum and weight by `fsdp.output_sum`. Gradients are those of the loss, sum / weight.

    A value that depends on parameters only is not kept from forward to backward: every
    backward op that uses one has its own `fsdp.read` directly before it.

    With `of-sum`, gradients are those of the sum alone, and `fsdp.gradient` names the weight that divides them later:
    gradient accumulation adds them up.

    The bodies of `fsdp.checkpoint` regions become part of the step. Values that backward needs and the region does not
    keep are recomputed directly before the backward of the region, by ops that are backward.
    Values that it keeps are kept as ranks share them: ops of its backward other than elementwise ones take an `fsdp.constraint`
    that leaves everything open, so that a gather of forward is repeated and its result is not kept.

    Example: `fsdp-opt --fsdp-differentiate model.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
  let options = [
    Option<"ofSum", "of-sum", "bool", "false",
           "Gradients of the sum of losses instead of sum / weight">,
  ];
}

def ApplyOptimizerPass : Pass<"fsdp-apply-optimizer", "::mlir::fsdp::StepOp"> {
  let summary = "Create the updates of the parameters from their gradients";
  let description = [{
    After this pass each `fsdp.gradient` is a `fsdp.update` at the learning rate of the step,
    scaled if the optimizer clips gradients; norm and learning rate are logged, and all updates are skipped
    if the loss or the norm is not finite. `fsdp.advance` ends the step.

    Example: `fsdp-opt --fsdp-differentiate --fsdp-apply-optimizer model.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def ShardParametersPass : Pass<"fsdp-shard-parameters", "::mlir::ModuleOp"> {
  let summary = "Assign a placement to every parameter";
  let description = [{
    After this pass every parameter has a placement. It is given by the `PATTERN:SPEC` of the option `shard` whose glob
    matches the parameter's name; otherwise by the placement in the module; otherwise by the strategy, which says what is split over the mesh
    axis `fsdp` (other axes replicate):

    | strategy | parameter | gradient | optimizer state |
    |---|---|---|---|
    | `ddp` | replicated | replicated | replicated |
    | `zero1` | replicated | replicated | flat |
    | `zero2` | replicated | flat | flat |
    | `fsdp`, `hsdp` | flat | flat | flat |

    `hsdp` is `fsdp` on a mesh that has other axes. A strategy on a mesh that lacks its axes is an error; the default, `fsdp`, replicates
    everything there, with a remark. Parameters with fewer than `min-shard-size` elements are replicated.

    SPEC is `flat`, `replicated` or the number of a dimension: how the tensors that the strategy splits are stored (all of them with
    `ddp`), with axes in parentheses other than `fsdp` where wanted, `flat(fsdp+node)`, major to minor. Or it is how the parameter is
    split in compute, an entry for each dimension, `_` for whole: `_,tensor`; or both: `_,tensor@flat`. A part of an axis is allowed in
    place of the axis, `_,tensor:(1)2`: the axis is then split there (see `fsdp-propagate`). Several
    `PATTERN:SPEC` are separated by `;`. A pattern that matches no parameter and two patterns that differ for a parameter are errors.

    Gathered units are freed after their use, unless `fsdp-reshard-after-forward` changes that.

    Example: `fsdp-opt --fsdp-shard-parameters="strategy=zero1 min-shard-size=1024 shard=*.bias:replicated;head.weight:1" model.mlir`
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"fsdp\"",
           "ddp, zero1, zero2, fsdp or hsdp">,
    Option<"minShardSize", "min-shard-size", "::mlir::fsdp::Count", "::mlir::fsdp::Count{0}",
           "parameters with fewer elements are replicated">,
    Option<"shard", "shard", "std::string", "\"\"",
           "PATTERN:SPEC, separated by ';', with SPEC a storage, a compute sharding or COMPUTE@STORAGE">,
  ];
}

def ReshardAfterForwardPass : Pass<"fsdp-reshard-after-forward", "::mlir::ModuleOp"> {
  let summary = "Set whether gathered units are kept from forward to backward";
  let description = [{
    After this pass every placement has the value of the option `when`: `always` frees a gathered unit after forward and gathers
    it again in backward, `never` keeps it, `axes:A+B` keeps the part of it that is split over these axes, or parts of axes, so
    that backward gathers over fewer ranks: it is stored over them first, then over its other axes; where it has no others, this is `always`. This includes placements that are given in the model; replicated parameters have
    no part to keep.

    Example: `fsdp-opt --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never model.mlir`
  }];
  let options = [
    Option<"when", "when", "std::string", "\"always\"",
           "when gathered units are freed: always, never or axes:A+B">,
  ];
}

def MixedPrecisionPass : Pass<"fsdp-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "Compute in bf16: assign types to values and insert casts";
  let description = [{
    After this pass placements have the types in which parameters are gathered (`compute`) and gradients reduced
    (`reduce`), reads have that type, and so have the values computed from them. Parameters remain stored in f32. With
    `compute=bf16` contractions, attention and lookups use bf16; elementwise ops use the widest type of
    their operands (a constant has any type in which it is exact); norms use the type of their input; sums, statistics
    of rows and losses are f32 or f64. Inputs keep their type and are cast at the first contraction. Runs
    before differentiation.

    Example: `fsdp-opt --fsdp-shard-parameters --fsdp-mixed-precision="compute=bf16 reduce=f32" model.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
  let options = [
    Option<"compute", "compute", "std::string", "\"bf16\"",
           "f32 or bf16: type of gathers and of computation">,
    Option<"reduce", "reduce", "std::string", "\"f32\"",
           "f32 or bf16: type of gradients until they are reduced">,
  ];
}

def PropagatePass : Pass<"fsdp-propagate", "::mlir::ModuleOp"> {
  let summary = "Assign a sharding to every value of every step";
  let description = [{
    After this pass every op with tensor results has the attribute `fsdp.shardings`, one sharding for
    each result, and takes its operands in the shardings that they have; an `fsdp.reshard` is inserted where they differ. Inputs are
    split along their sample dimension over the mesh axes `data` and `fsdp` and those of the option `batch-axes`; an unused axis is an error.
    Parameters are split in compute as in their placements; without one, propagation chooses, but not axes that split the batch or store the
    parameter, and records the choice in the placement. All other shardings follow from these and from `fsdp.constraint` by the sharding
    rules of the ops, forwards and backwards, by iteration to a fixed point over all steps (docs/sharding.md): constraints by
    priority, and for each priority ops that pass dimensions through before contractions. `unreduced` marks results that are
    partial sums. With `accumulate` K above 1, steps are also split over the axis `microbatch` of size K, which the mesh has until
    `fsdp-partition`: its parts are not on different ranks but follow one another in time.

    Where a constraint, a `split` or a placement names a part of an axis, or propagation finds that a dimension takes no more than a part (of an axis that does not split the batch), the
    axis is split: the mesh has its parts as axes, major to minor (`"tensor:(1)2"=2, "tensor:(2)2"=2` for `"tensor"=4`), and names of
    the axis are replaced by them. Ranks and the order of devices stay. `explain` prints a remark for each
    axis of the values that it names: which op, operand and priority it comes from.

    Example: `fsdp-opt --fsdp-propagate=batch-axes=node model.mlir`
  }];
  let options = [
    ListOption<"batchAxes", "batch-axes", "std::string",
               "axes that split the batch, in addition to data and fsdp">,
    Option<"accumulate", "accumulate", "::mlir::fsdp::Microbatches", "::mlir::fsdp::Microbatches{1}",
           "microbatches of a step">,
    Option<"explain", "explain", "std::string", "\"\"",
           "values ('*' and '?' match) of which remarks say where their axes come from">,
  ];
}

def PadVocabularyPass : Pass<"fsdp-pad-vocabulary", "::mlir::ModuleOp"> {
  let summary = "Decide to which sizes ranks pad rows of tables and classes";
  let description = [{
    After this pass a parameter with a dimension that integers number (the rows of a table of `nn.embedding`, the classes of
    `nn.cross_entropy`) has `padded` where ranks are to compute with more of them: a multiple of 64 for each rank that has a part, or of 32, 16 or 8
    where a larger one would add more than a twentieth (the option `most-padding`, in percent). Rows of logits then begin at aligned addresses, and all parts are equal. Steps
    do not change: the type of a parameter is its true size, and `fsdp-partition` pads, and masks where padding would count.

    A size is padded in all values that it runs through, or nowhere. Where an op needs all of it in one place and would see the padding
    (`nn.softmax` of logits, an output), it is not padded, and that op gets a remark.

    Example: `fsdp-opt --fsdp-propagate --fsdp-pad-vocabulary=multiple=64 model.mlir`
  }];
  let options = [
    Option<"multiple", "multiple", "::mlir::fsdp::PositiveCount", "::mlir::fsdp::PositiveCount{64}",
           "preferred divisor of the part of a rank; 1 pads nothing">,
    Option<"mostPadding", "most-padding", "::mlir::fsdp::Count", "::mlir::fsdp::Count{5}",
           "maximum padding, in percent of a size">,
  ];
}

def PrintShardingsPass : Pass<"fsdp-print-shardings", "::mlir::ModuleOp"> {
  let summary = "Print the sharding of every value as a table";
  let description = [{
    Prints to standard error, for each step with shardings, one line for each value: its name, op, shape, sharding (a dimension's axes joined by `+`,
    `_` for an unsharded dimension), the shape and the bytes of one rank, and the axes over which it is a partial sum.
    The module does not change. Runs between `fsdp-propagate` and `fsdp-partition`.

    Example: `fsdp-opt --fsdp-propagate --fsdp-print-shardings model.mlir`
  }];
  let options = [
    Option<"only", "only", "std::string", "\"*\"", "names to print ('*' and '?' match)">,
  ];
}

def DrawShardingPass : Pass<"fsdp-draw-sharding", "::mlir::ModuleOp"> {
  let summary = "Draw which rank holds which part of a value";
  let description = [{
    Draws the value of that name, or the parameter as compute reads it, as a grid of its parts with the ranks that hold each: to standard
    error, or as SVG into `file`. Columns are the parts of the last split dimension, rows those of the others.
    The module does not change. Runs between `fsdp-propagate` and `fsdp-partition`.

    Example: `fsdp-opt --fsdp-propagate --fsdp-draw-sharding=value=x model.mlir`
  }];
  let options = [
    Option<"value", "value", "std::string", "\"\"", "name of a value or of a parameter">,
    Option<"file", "file", "std::string", "\"\"", "SVG file to write instead">,
  ];
}

def AssignStagesPass : Pass<"fsdp-assign-stages", "::mlir::ModuleOp"> {
  let summary = "Divide the units of a model among the ranks of a pipeline";
  let description = [{
    Where the mesh has an axis of roles (`pipeline`) of more than one rank that no manual region uses, each op of a unit gets the stage that computes it, in the
    `stage` of its structure, and each read belongs to one stage. Stages have consecutive units in the order of forward; a unit that is used in several places
    (embedding and head of a tied model) counts once for each. Rank r of p computes stages r, r+p, ...: one, or V with the schedule
    `interleaved:V`. `stages` is the number of units of each, or `auto`: the dearest stage has the least floating-point operations. Ops without a unit follow
    their operands; what is computed from inputs and constants alone, or from parameters alone and cheaply (a cast, a broadcast), is computed wherever it is needed. A constraint, a split or a placement over the axis is an error.

    Parameters of one unit that different ranks use become units of their own, so that a rank stores what it computes with: a unit `ends` whose table
    the first and the last of four stages use is `ends.stage0_3` (the table), `ends.stage0` and `ends.stage3` (what one of them uses alone). The name has all stages (`.stage0_2to5` for 0, 2, 3, 4 and 5), and
    `.2` or more behind them where a unit of the model has the name. Runs before differentiation, which copies stages to backward.

    Example: `fsdp-opt --fsdp-assign-stages=stages=2,3 model.mlir`
  }];
  let options = [
    Option<"stages", "stages", "std::string", "\"auto\"", "auto, or the number of units of each stage, separated by commas">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "1f1b, gpipe, interleaved:V or zb: how many stages a rank has">,
  ];
}

def SplitStagesPass : Pass<"fsdp-split-stages", "::mlir::ModuleOp"> {
  let summary = "Turn the program of all ranks into one for each rank of a pipeline";
  let description = [{
    After this pass a module whose ops have stages has a program for each rank along the axis of roles, and storages name their owners. A
    program receives what the stage before sends, computes its own, and sends on; backward goes the other way. A value that is needed
    further away passes through the stages between. What follows all microbatches is computed by the ranks that need it: updates by the owners of a storage,
    outputs by all. Scalars that others need for that, such as the loss and the squares of gradients, are exchanged by one all-reduce in which
    one rank has the value and others add zero, so that sums keep their order and bits; shards of the gradients of a weight that several
    stages use are sent, and added up in one order.

    Each program still runs one microbatch after another (see `fsdp-pipeline-microbatches`). A module without stages, and one of several programs, is left as it is. A stage that is not below
    `fsdp.stages`, and an op of forward with an operand of a later stage, are errors; a stage that computes nothing is a warning.

    Example: `fsdp-opt --fsdp-split-stages local.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def PipelineMicrobatchesPass : Pass<"fsdp-pipeline-microbatches", "::mlir::ModuleOp"> {
  let summary = "Run the microbatches of a pipeline in the order of a schedule";
  let description = [{
    After this pass each step of a module with a program for each rank of a pipeline is one segment, in which parts of all microbatches follow one another in the order
    that `schedule` gives the rank: forward of one microbatch in one stage, or backward; with `zb` the gradients of weights are parts of their own. What
    was carried from one microbatch to the next is a value. Microbatches add to gradients in
    the order of their numbers, whatever the schedule. With `interleaved:V` the number of microbatches must be a multiple of the ranks.

    Example: `fsdp-opt --fsdp-split-stages --fsdp-pipeline-microbatches=schedule=gpipe local.mlir`
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "1f1b, gpipe, interleaved:V or zb">,
  ];
}

def PartitionPass : Pass<"fsdp-partition", "::mlir::ModuleOp"> {
  let summary = "Turn the program of one device into the program of one rank";
  let description = [{
    After this pass the module is in the local phase: storages contain the shards of parameters and optimizer states,
    steps are segments of one program, every value has the shape of one rank, and every
    collective is explicit. A unit is gathered at its first use in each run of uses, its gradients are concatenated
    and reduced directly after the last one is complete, and padding is masked before reductions over it. Any other change
    of the sharding of a value that moves data between ranks is reported as a remark, with the collective and its bytes (of an
    evaluation step only if no step trains).

    A parameter that is replicated while its optimizer state is split is read from a copy; its gradients are reduce-scattered, and after
    the update the new shards are gathered into the copy. With `buckets=parameter` each parameter is a separate storage, gathered and
    reduced by itself. With `buckets=units:K` up to K consecutive units of one stage share storages if they are alike, in types, placements and updates.

    A step that is split over the axis `microbatch` becomes the segments `first`, `middle`, `last` and `update` of one `fsdp.walk`:
    the first three compute one microbatch each and add up gradients and sums in `fsdp.carried` tensors; `last` completes
    the gradients and `update` runs the rest once. `accumulate-reduce` says when gradients are reduced over ranks: in `each` microbatch, shards are
    added up; with `last`, gradients are added up before they are reduced. `auto` is `each` where the placement splits the gradient, `last` where it
    replicates it. A value that depends on the samples of more than one microbatch and that forward needs (batch statistics) is an error.

    The gradient of a parameter that is used in several places far apart (a tied weight) is a sum of terms that arise far apart. With
    `tied-gradients=each` its unit is reduced for each use and the shards are added, so that no whole gradient lives from the first use to the last; with
    `once` the terms are added whole and reduced once. A gradient that is stored whole is always
    reduced once.

    Example: `fsdp-opt --fsdp-shard-parameters --fsdp-differentiate --fsdp-apply-optimizer --fsdp-propagate --fsdp-partition model.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
  let options = [
    Option<"accumulateReduce", "accumulate-reduce", "std::string", "\"auto\"",
           "each, last or auto: the microbatches that reduce gradients">,
    Option<"tiedGradients", "tied-gradients", "std::string", "\"each\"",
           "each or once: how often gradients of parameters with several uses are reduced">,
    Option<"buckets", "buckets", "std::string", "\"unit\"",
           "unit, units:K or parameter: what is stored, gathered and reduced together">,
  ];
}

def ChunkLossPass : Pass<"fsdp-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "Compute logits, their loss and their cotangent in chunks of rows";
  let description = [{
    After this pass no tensor has all rows of logits from which a loss is computed (operands of ops that read
    logits, by their kernel interface): the ops that compute such tensors, and those that use them, are
    repeated once per chunk of the first dimension of rows that allows it, preferably one that the
    number of chunks divides. A chunk's forward and backward are adjacent, so its logits are dead before the next chunk's are computed. Results with
    rows are concatenated; sums over rows, such as the gradient of the weight, are added up, so they agree with those of one
    chunk to rounding; the loss is the same sum of the same values.
    It is an error if rows depend on each other (a loss that is not a sum over rows), if another op needs all
    logits, or if nothing reads logits. With `chunks=1` nothing changes.

    Example: `fsdp-opt --fsdp-chunk-loss=chunks=4 local.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
  let options = [
    Option<"chunks", "chunks", "::mlir::fsdp::PositiveCount", /*default=*/"::mlir::fsdp::PositiveCount{1}",
           "number of chunks">];
}

def JoinAllReducesPass : Pass<"fsdp-join-all-reduces", "::mlir::fsdp::ProgramOp"> {
  let summary = "Join consecutive small all-reduces";
  let description = [{
    Joins consecutive all-reduces of a segment into one if they have the same axes, kind (sum or maximum), element type, unit and
    direction, do not depend on each other, have at most `limit` bytes together, and have only elementwise ops, broadcasts and reductions
    between them. The values are flattened in the order of the text, reduced, and viewed: each is computed in its part of the flat
    buffer and used there, so nothing is copied. The sum of each element over ranks does not change.

    A ring of n ranks takes `2 (n - 1)` messages for an all-reduce, and `2 (n - 1) / n` times its bytes on a link: up to n times latency times bandwidth
    it waits for messages more than for bytes. For two ranks with NVLink that is 2 to 6 MB on the machines that `--machine` names; the default limit is 1 MiB.

    Scalars (losses, norms) and sums of gradients are not joined: compute does not wait for them.

    Example: `fsdp-opt --fsdp-partition --fsdp-join-all-reduces global.mlir`
  }];
  let options = [
    Option<"limit", "limit", "::mlir::fsdp::Count", /*default=*/"::mlir::fsdp::Count{1 << 20}",
           "bytes of an all-reduce of several values, at most; 0 joins none">];
}

def JoinKernelsPass : Pass<"fsdp-join-kernels", "::mlir::fsdp::ProgramOp"> {
  let summary = "Join ops whose kernels can be one launch";
  let description = [{
    After this pass the gradient of a norm (`nn.layer_norm_grad`, `nn.rms_norm_grad`) adds the cotangent that reaches the operand of the norm past it, the gradient of a residual connection, if nothing else takes its own result and that cotangent is used elsewhere too. It also adds up the rows of the result, which is the gradient of a bias before the norm, where that bias is in the unit of the norm or its gradient is not reduced over ranks: else two units would have gradients that are not reduced yet, while `fsdp-schedule` keeps their number within `prefetch`.

    Sums of squares (`fsdp.square_sum`) whose results are added become one, of 24 shards at most; those of the shards that are reduced last remain apart, as the others do not wait for that reduction.

    A loss of rows of logits (`nn.cross_entropy`, and `nn.partial_cross_entropy` where no other rank has classes) computes the cotangent of the logits too, so that the logits are read once. The cotangent of the loss must not depend on the loss: what computes it, from constants and counts of samples for example, is moved before the loss, if it is pure, waits for no other rank and has at most one number for each row. Other reads of the logits must come before the loss, as the gradient may take their place.

    In f32 each number of a gradient with a residual is the same; in 16-bit types it is rounded once instead of twice. Sums over rows are added as by the norm's own sums, of numbers that are not rounded: they differ in their last digits from those of `nn.reduce`, in f32 too. The squares are added in double. Each number of a loss and its gradient is the same.

    Example: `fsdp-opt --fsdp-partition --fsdp-join-kernels --fsdp-fuse global.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def DeferUpdatesPass : Pass<"fsdp-defer-updates", "::mlir::ModuleOp"> {
  let summary = "Move updates into the next step, before the parameters are used there";
  let description = [{
    After this pass an update of a training step is in the next step, directly before the first load of its storage's parameter, if
    the step has computed with parameters of another storage before: the update can overlap with that computation. It runs on a separate stream. The update of
    the storage that is used first would delay the step anywhere, and stays at the end of its step, as does that of a
    parameter that the first segment does not load.

    The inputs of a deferred update from its step are carried: the gradient (with microbatches their sum is carried already), learning rate, scale and `ok`. These are zero
    at the start (`zeroed`), so the updates in the first step do nothing. A segment marked `drain` performs
    the same updates and makes `ok` false. It comes between training and evaluation, and at the end of a run. A module in
    which no update is deferred does not change.

    Example: `fsdp-opt --fsdp-partition --fsdp-defer-updates --fsdp-fuse global.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def FusePass : Pass<"fsdp-fuse", "::mlir::fsdp::ProgramOp"> {
  let summary = "Fuse elementwise chains with their producers and reductions";
  let description = [{
    After this pass connected elementwise ops of one shape are in one `nn.fused`, with the
    broadcasts, masks, constants and scalar arithmetic that they use and, at the end, at most one
    `nn.reduce`. If a chain continues with the rows of a matrix product, like a bias, a GELU or a residual,
    the `nn.einsum` is the first op of the `nn.fused`. A value that is used only inside is not stored; one that is also used elsewhere
    is an additional result. Only cheap arithmetic is computed twice, nothing moves past a
    collective, and the ops themselves do not change, so results are bitwise equal. A kernel of elementwise ops that is the only reader of a product joins the kernel that
    begins with that product, as the two gradients of a gated activation do. A sum over the rows of an operand of a product joins that product, as the gradients of a bias and its weight do.

    Example: `fsdp-opt --fsdp-fuse local.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
}

def SchedulePass : Pass<"fsdp-schedule", "::mlir::ModuleOp"> {
  let summary = "Schedule local IR as launches on streams, with the waits between them";
  let description = [{
    After this pass the module is in the scheduled phase: values are `fsdp.buffer`s without offsets, ops are in
    `fsdp.launch`es in issue order. Inputs come first; the gather of a unit is issued as soon as all units used
    before it except the last `prefetch` are no longer needed, so that at most `prefetch` + 1 units are unsharded
    at any time; the same limit applies to gradients before their reduction. A `fsdp.receive` is issued one stage of a microbatch
    ahead and waits for the computation before it, and what computes the operand of a `fsdp.send` waits until the second send before it, of the same direction, is complete; sends of one
    stage and microbatch count as one. The storages of a unit are gathered by one
    launch, over each group of ranks, and their gradients reduced by one, unless `group` is false. Unless it is, casts that no
    collective follows, of up to six units of equal size, are one launch, in the place of the first, where that makes no arena larger: then more than
    `prefetch` + 1 units may be unsharded. Launches have all
    waits between streams that their accesses require, except those that other waits imply.

    Example: `fsdp-opt --fsdp-schedule=prefetch=0 local.mlir`
  }];
  let dependentDialects = ["::mlir::nn::NNDialect"];
  let options = [
    Option<"prefetch", "prefetch", "::mlir::fsdp::Count", /*default=*/"::mlir::fsdp::Count{1}",
           "number of units gathered ahead of the unit in use; 0 gathers each unit after the last use of the one before">,
    Option<"group", "group", "bool", /*default=*/"true",
           "gather all storages of a unit, and reduce their gradients, by one launch">];
}

def PlanMemoryPass : Pass<"fsdp-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Assign an offset in the arena to every buffer";
  let description = [{
    After this pass every `fsdp.buffer` has an offset and every program the size of its arena in bytes. Persistent
    buffers come first; two other buffers share bytes only if all accesses of one are complete before any access of
    the other starts, or if an elementwise launch overwrites an operand that is not used later.

    Example: `fsdp-opt --fsdp-schedule --fsdp-plan-memory local.mlir`
  }];
}

def LinkSegmentsPass : Pass<"fsdp-link-segments", "::mlir::ModuleOp"> {
  let summary = "Replace joins between segments by the waits that are needed";
  let description = [{
    After this pass all segments are `async`: nothing waits at their ends. A launch that uses bytes
    of the arena, or a communicator, that launches of an earlier segment may still be using waits for the `fsdp.event`s that these
    record; what these waits and the order on streams imply is left out. Needs planned memory.

    Example: `fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments local.mlir`
  }];
}

def VerifySchedulePass : Pass<"fsdp-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Verify that a schedule has no race, no deadlock and no overlap in memory";
  let description = [{
    After this pass, on every path through the segments: conflicting accesses are ordered by streams, waits and
    events, also those of different segments without a join between them; nothing is read before it is written or after another
    buffer overwrote it; all roles execute the same segments and issue the same collectives in one order on each communicator, one
    role possibly some segments ahead of another, except where streams are joined; waits have no cycle, on one rank or between
    roles; a storage is updated once between two advances of the step, under a condition of that step or, where it is `deferred`, of the one before, and the step's number is not used after it was advanced in its
    walk; and, once memory is planned, every buffer is inside the arena and does not overlap what the driver fills. Each error names both
    launches.

    Example: `fsdp-opt --fsdp-verify-schedule scheduled.mlir`
  }];
}

#endif // FSDP_PASSES_TD
