//===- FSDPGlobalOps.td - ops of the global phase -------------------------===//

#ifndef FSDP_GLOBAL_OPS_TD
#define FSDP_GLOBAL_OPS_TD

include "dialect/fsdp/FSDPModuleOps.td"
include "dialect/nn/NNInterfaces.td"

def FSDP_InputOp : FSDP_Op<"input", [Pure, InGlobalPhase, InLocalPhase, InScheduledPhase]> {
  let summary = "The batch of this step, or the samples of it that this rank processes";
  let description = [{
    Dimension `sample_dim` is the sample dimension. In the global phase the value is the global batch. From the
    local phase on, `shard_of` is the global batch size B and `over` the axes that split it
    into R parts: rank index r takes samples [r*c, (r+1)*c) with c = ceil(B/R) = the local size; those
    past B repeat the last sample and have weight 0. With `microbatches` K the value is one of K consecutive parts of the
    rank's samples, of ceil(c/K) each: part `at`, or without it the next one each time that a segment with the op runs. The parts
    are loaded in order once in a step, by one segment or by several. Samples past c or B have weight 0.

    Constraints:
    - (C1) `shard_of` and `over` are given together; the local size is the ceil-divided batch, of at least one
      sample, ceil-divided once more by `microbatches`; axes are distinct axes of the mesh.
    - (C4) `microbatches` is at least 1, and given together with `shard_of`.
    - (C2) `sample_dim` is a dimension of the type, of at least one sample.
    - (C3) the name is not `__metadata__`.
    - (C5) `at` is at least 0 and less than `microbatches`, and given with it only.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x64xf32>
        %y0 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 2 at 0 : tensor<2x64xf32>
        %y1 = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 2 at 1 : tensor<2x64xf32>
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$sample_dim, OptionalAttr<I64Attr>:$global_batch,
                       OptionalAttr<StrArrayAttr>:$over, OptionalAttr<I64Attr>:$microbatches,
                       OptionalAttr<I64Attr>:$microbatch);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = [{
    $name `sample_dim` $sample_dim (`shard_of` $global_batch^ `over` $over)? (`microbatches` $microbatches^)?
    (`at` $microbatch^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_ReadOp : FSDP_Op<"read", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InGlobalPhase,
    MemoryEffects<[MemRead<FSDP_ParameterResource>]>]> {
  let summary = "Use a parameter in compute";
  let description = [{
    Returns the unsharded parameter in the type in which it is gathered; partitioning turns it into a cast and a gather.
    There is one read per use in forward and one per use in backward, each of which may become a gather. Like
    the gather, a read allocates its result: reads are never merged or hoisted, only removed when unused.

    Constraints:
    - (C1) the result has the shape of the `fsdp.param`, in the `gather` type of its placement where there is one.

    Example:
    ```mlir
    fsdp.param @w : tensor<4x3xf32> unit "w" init <constant, 0.0>
    fsdp.step @eval evaluate {
      %w = fsdp.read @w : tensor<4x3xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param);
  let results = (outs Res<FSDP_FloatTensor, "gathered storage", [MemAlloc]>:$result);
  let assemblyFormat = "$param attr-dict `:` type($result)";
}

def FSDP_LossOp : FSDP_Op<"loss", [InGlobalPhase, MemoryEffects<[MemWrite<FSDP_OutputResource>]>]> {
  let summary = "The loss of the step as a sum and a weight";
  let description = [{
    The loss is sum / weight over the global batch. The weight is the number of terms of the sum
    (samples, tokens that are not ignored) and depends on no parameter. If it is 0, the loss is the
    sum, which is 0, and so are the gradients.

    Constraints:
    - (C1) a step has exactly one loss.
    - (C2) a weight that is a constant is finite and above 0.

    Example:
    ```mlir
    fsdp.step @eval evaluate {
      %sum = arith.constant dense<3.0> : tensor<f64>
      %weight = arith.constant dense<2.0> : tensor<f64>
      fsdp.loss %sum over %weight
    }
    ```
  }];
  let arguments = (ins FSDP_ScalarF64:$sum, FSDP_ScalarF64:$weight);
  let assemblyFormat = "$sum `over` $weight attr-dict";
  let hasVerifier = 1;
}

def FSDP_MetricOp : FSDP_Op<"metric", [InGlobalPhase, MemoryEffects<[MemWrite<FSDP_OutputResource>]>]> {
  let summary = "A metric of the step as a sum and a weight";
  let description = [{
    Logged under its name as sum / weight over the global batch, as the sum where the weight is 0; nothing is
    differentiated through it. `check` is given where `fsdp-lower-prints` made it of a `fsdp.check`: its place among the checks of the
    step, in the order of the text.

    Constraints:
    - (C1) the name is unique among the metrics of the step and is not a key of the log.
    - (C2) a weight that is a constant is finite and above 0.

    Example:
    ```mlir
    fsdp.step @eval evaluate {
      %sum = arith.constant dense<3.0> : tensor<f64>
      %weight = arith.constant dense<4.0> : tensor<f64>
      fsdp.metric "accuracy" %sum over %weight
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, FSDP_ScalarF64:$sum, FSDP_ScalarF64:$weight, OptionalAttr<FSDP_Number>:$check);
  let assemblyFormat = "$name $sum `over` $weight (`check` $check^)? attr-dict";
  let hasVerifier = 1;
}

/// A report on a value of the model in each training step.
class FSDP_ReportOp<string mnemonic, Type value>
    : FSDP_Op<mnemonic, [InGlobalPhase, MemoryEffects<[MemWrite<FSDP_OutputResource>]>]> {
  let arguments = (ins StrAttr:$name, value:$value);
  let assemblyFormat = "$name $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def FSDP_PrintOp : FSDP_ReportOp<"print", FSDP_Tensor> {
  let summary = "Log statistics of a value";
  let description = [{
    Logs of the elements that are finite the minimum `NAME.min`, the maximum `NAME.max` and the mean `NAME.mean`, and how many
    are not finite (`NAME.nan`), over the global batch. Without a finite element minimum and maximum are inf and -inf, and the mean is
    NaN. Evaluations leave it out. `fsdp-lower-prints` makes metrics of it.

    Constraints:
    - (C1) it is in a step of kind `train`, or in a checkpoint of one.
    - (C2) no metric, print or check of the step logs another number under one of its names, and none is a key of the log.

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      fsdp.print "features" %x : tensor<8x4xf32>
    }
    ```
  }];
}

def FSDP_CheckOp : FSDP_ReportOp<"check", FSDP_FloatTensor> {
  let summary = "Refuse a step in which a value is not finite";
  let description = [{
    Logs under `NAME.check` how many elements are not finite. A step in which that is not 0 changes
    no parameter, and the run ends, or `--on-nan` determines how it continues. Evaluations leave it
    out. `fsdp-lower-prints` makes a metric of it, whose `check` is its place among the checks of the step.

    Constraints:
    - (C1) it is in a step of kind `train`, or in a checkpoint of one.
    - (C2) no metric, print or check of the step logs another number under its name, and it is no key of the log.

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      fsdp.check "features" %x : tensor<8x4xf32>
    }
    ```
  }];
}

def FSDP_GradientOp : FSDP_Op<"gradient", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InGlobalPhase,
    MemoryEffects<[MemWrite<FSDP_OutputResource>]>]> {
  let summary = "The gradient of the loss with respect to a parameter";
  let description = [{
    Created by `fsdp-differentiate`, one for each parameter that is not frozen, in the order
    in which backward completes them; turned into an update by `fsdp-apply-optimizer`. With `over` the value is the gradient
    of the sum of losses, and that of the loss is the value divided by this weight: with gradient accumulation the weight is known after the last microbatch only.

    Constraints:
    - (C1) the value has the shape of the parameter, in the `reduce` type of its placement where there is one.

    Example:
    ```mlir
    fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %g = arith.constant dense<1.0> : tensor<3xf32>
      fsdp.gradient @w, %g : tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, FSDP_FloatTensor:$value, Optional<FSDP_ScalarF64>:$weight);
  let assemblyFormat = "$param `,` $value (`over` $weight^)? attr-dict `:` type($value)";
}

def FSDP_GlobalNormOp : FSDP_Op<"global_norm", [Pure, InGlobalPhase]> {
  let summary = "The L2 norm of all gradients together";
  let description = [{
    sqrt(sum of squares of every element of every gradient), summed in double. `params` names
    the parameter of each gradient, so that partitioning can sum over shards.

    Constraints:
    - (C1) there are as many gradients as parameters, each of the shape of its parameter.

    Example:
    ```mlir
    fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %g = arith.constant dense<1.0> : tensor<3xf32>
      %n = fsdp.global_norm [@w] %g : tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins TypedArrayAttrBase<FlatSymbolRefAttr, "parameters">:$params,
                       Variadic<FSDP_FloatTensor>:$gradients);
  let results = (outs FSDP_ScalarF32:$norm);
  let assemblyFormat = "$params ($gradients^ `:` type($gradients))? attr-dict";
  let hasVerifier = 1;
}

def FSDP_UpdateOp : FSDP_Op<"update", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InGlobalPhase,
    MemoryEffects<[MemRead<FSDP_ParameterResource>, MemWrite<FSDP_ParameterResource>]>]> {
  let summary = "Update a parameter and its optimizer state in place";
  let description = [{
    Applies the optimizer's rule to `param` with `gradient` times `scale` and the learning rate `lr`
    if `ok` is true; otherwise parameter and state do not change.

    Constraints:
    - (C1) the gradient has the shape of the parameter, in the `reduce` type of its placement where there is one.

    Example:
    ```mlir
    fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %g = arith.constant dense<1.0> : tensor<3xf32>
      %scale = arith.constant dense<1.0> : tensor<f32>
      %ok = arith.constant dense<true> : tensor<i1>
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      fsdp.update @w, %g lr %lr scale %scale if %ok <sgd, lr = 0.1> : tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, FSDP_FloatTensor:$gradient, FSDP_ScalarF32:$lr,
                       FSDP_ScalarF32:$scale, FSDP_ScalarI1:$ok, FSDP_OptimizerAttr:$optimizer);
  let assemblyFormat = [{
    $param `,` $gradient `lr` $lr `scale` $scale `if` $ok $optimizer attr-dict `:` type($gradient)
  }];
}

def FSDP_ConstraintOp : FSDP_Op<"constraint", [Pure, InGlobalPhase, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getLinearity"]>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getPrecisionClass"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Require a sharding of a value";
  let description = [{
    The identity; propagation gives its result the sharding `sharding`: the axes of a closed dimension as they are,
    those of an open one (`?`) first, to be extended. `priorities` has a number for each dimension: axes of priority 0
    (the default) reach the whole program before axes of priority 1 are propagated, and so on; until then no other
    value's sharding takes their place. Its cotangent has the same constraint.

    With `manual` it is the boundary of a `fsdp.manual` region: these axes split the value as `sharding` says and not otherwise.

    With `sequence_parallel` it marks the positions of a residual stream, and `--sequence-parallel` decides whether it
    stays (`fsdp-sequence-parallel`).

    Constraints:
    - (C1) the sharding has the rank of the value, names axes of the mesh or parts of them that divide them, no `unreduced`.
    - (C2) priorities are as many as dimensions, 0 to 1000, not all 0, and 0 for a closed dimension without axes.
    - (C3) with `sequence_parallel`, one dimension has axes: that of the positions.
    - (C4) `manual` names distinct axes of the mesh; each of the sharding is among them.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4, "tensor"=2]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {} ]> : tensor<8x4xf32>
      %z = fsdp.constraint %y <@mesh, [{?}, {"tensor"} ]> priorities [0, 1] : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, FSDP_ShardingAttr:$sharding,
                       OptionalAttr<DenseI64ArrayAttr>:$priorities, UnitAttr:$sequence_parallel,
                       OptionalAttr<StrArrayAttr>:$manual);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input $sharding (`priorities` $priorities^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FSDP_ReshardOp : FSDP_Op<"reshard", [Pure, InGlobalPhase, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>]> {
  let summary = "Move a value to another sharding";
  let description = [{
    The identity on whole tensors; the result has the sharding `sharding`, independent of the operand's. `fsdp-propagate`
    inserts it in front of an op that cannot take an operand as it is split, so that the move is visible before
    anything is partitioned; `fsdp-partition` makes it collectives. Partial sums of the operand are completed.
    With `lower_priority` the model requested the axes that it moves with a lower priority than
    those of the op: the move is expected, and no remark reports it.

    Constraints:
    - (C1) the sharding has the rank of the value, names axes of the mesh or parts of them that divide them, no `unreduced`
      and no open dimension.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %y = fsdp.reshard %x <@mesh, [{}, {"fsdp"} ]> : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, FSDP_ShardingAttr:$sharding, UnitAttr:$lower_priority);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FSDP_CheckpointPolicyAttr : EnumAttr<FSDP_Dialect, FSDP_CheckpointPolicy, "checkpoint_policy">;

def FSDP_CheckpointOp : FSDP_Op<"checkpoint", [InGlobalPhase, RecursiveMemoryEffects,
                                              SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A part of forward that backward computes again instead of keeping its values";
  let description = [{
    Computes what its body computes, and yields the values that are used outside. The body may use values from
    outside. `policy` says which values are kept for backward: with `full` the values that the body takes from
    outside and the results; with `selective` the results of the contractions in the body, attention among
    them, as well (`isContraction` of the Kernel interface). `fsdp-differentiate` replaces the op by its body, and
    recomputes the other values that backward needs, directly before its backward. The values are those of
    the first time, draws of `fsdp.dropout` included.

    The DSL's `checkpoint` and `fsdp-rematerialize` build it.

    Constraints:
    - (C1) it is in a step of kind `train` and not in another checkpoint.
    - (C2) its body reads parameters and computes; inputs, losses, metrics and ops that write are outside. Prints and checks may
      be inside: they look at the values of the first time.
    - (C3) results have the types of the yielded values; the body has no arguments.

    Example:
    ```mlir
    fsdp.param @w : tensor<4x4xf32> unit "w" init <normal, 0.02>
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %y = fsdp.checkpoint full : tensor<8x4xf32> {
        %w = fsdp.read @w : tensor<4x4xf32>
        %p = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
        %t = math.tanh %p : tensor<8x4xf32>
        fsdp.yield %t : tensor<8x4xf32>
      }
      %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
      %weight = arith.constant dense<32.0> : tensor<f64>
      fsdp.loss %sum over %weight
    }
    ```
  }];
  let arguments = (ins FSDP_CheckpointPolicyAttr:$policy);
  let results = (outs Variadic<FSDP_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`` $policy attr-dict-with-keyword (`:` type($results)^)? custom<LaunchBody>($body)";
  let hasVerifier = 1;
}

#endif // FSDP_GLOBAL_OPS_TD
