//===- FSDPOptimizerOps.td - step state, rates, updates of shards ---------===//

#ifndef FSDP_OPTIMIZER_OPS_TD
#define FSDP_OPTIMIZER_OPS_TD

include "dialect/fsdp/FSDPLocalOps.td"

def FSDP_OutputOp : FSDP_Op<"output", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    MemoryEffects<[MemWrite<FSDP_OutputResource>]>]> {
  let summary = "Log a value of the step under a name";
  let description = [{
    The host reads it after the step and writes it into the log: `loss`, `grad_norm`, `lr` and the
    metrics of a training step. An evaluation step has `fsdp.output_sum`. `check` is that of the `fsdp.metric` that it comes from.

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %c = arith.constant dense<3.0> : tensor<f32>
      fsdp.output "loss" %c
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, FSDP_ScalarF32:$value, OptionalAttr<FSDP_Number>:$check);
  let assemblyFormat = "$name $value (`check` $check^)? attr-dict";
}

def FSDP_LearningRateOp : FSDP_Op<"learning_rate", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    MemoryEffects<[MemRead<FSDP_StepStateResource>]>]> {
  let summary = "The learning rate of this step";
  let description = [{
    Reads step, base rate and schedule from the step state. A program's driver writes them there before the first step: those of `optimizer`,
    where neither the run nor its checkpoint has others. docs/optimizers.md has the formulas.

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
    }
    ```
  }];
  let arguments = (ins FSDP_OptimizerAttr:$optimizer);
  let results = (outs FSDP_ScalarF32:$lr);
  let assemblyFormat = "$optimizer attr-dict";
}

def FSDP_ClipScaleOp : FSDP_Op<"clip_scale", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    MemoryEffects<[MemRead<FSDP_StepStateResource>]>]> {
  let summary = "The factor that clips gradients of a norm";
  let description = [{
    min(1, clip / (norm + 1e-6)) in f32, as PyTorch's `clip_grad_norm_`. `clip` is read from the step state, where a program's driver writes it before the first step: that of
    `optimizer`, where neither the run nor its checkpoint has another; infinity disables clipping.

    Constraints:
    - (C1) the optimizer clips: a program that never does has no such op.

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1, clip = 1.0> {
      %norm = arith.constant dense<3.0> : tensor<f32>
      %scale = fsdp.clip_scale <sgd, lr = 0.1, clip = 1.0> %norm
    }
    ```
  }];
  let arguments = (ins FSDP_OptimizerAttr:$optimizer, FSDP_ScalarF32:$norm);
  let results = (outs FSDP_ScalarF32:$scale);
  let assemblyFormat = "$optimizer $norm attr-dict";
  let hasVerifier = 1;
}

def FSDP_AcceptableOp : FSDP_Op<"acceptable", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    MemoryEffects<[MemRead<FSDP_StepStateResource>]>]> {
  let summary = "True if the step's update is applied";
  let description = [{
    Condition of updates: loss and gradient norm are finite, and neither is above its limit. The limits are in the step state, infinite unless a program's driver
    writes others before the step (`--on-spike`).

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %loss = arith.constant dense<3.0> : tensor<f32>
      %norm = arith.constant dense<0.5> : tensor<f32>
      %ok = fsdp.acceptable %loss norm %norm
    }
    ```
  }];
  let arguments = (ins FSDP_ScalarF32:$loss, FSDP_ScalarF32:$norm);
  let results = (outs FSDP_ScalarI1:$ok);
  let assemblyFormat = "$loss `norm` $norm attr-dict";
}

def FSDP_AdvanceOp : FSDP_Op<"advance", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    MemoryEffects<[MemRead<FSDP_StepStateResource>, MemRead<FSDP_BadGradientResource>,
                   MemWrite<FSDP_StepStateResource>, MemWrite<FSDP_BadGradientResource>]>]> {
  let summary = "Advance the step state";
  let description = [{
    Increments the step; when `ok` increments the optimizer's update count and clears the count of
    bad steps and the notes of updates, otherwise increments the count of bad steps. The last action
    of a training step: ops after it would read the state of the next step.

    Constraints:
    - (C1) no op that reads the step state and no update follows it in its block.

    Example:
    ```mlir
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %ok = arith.constant dense<true> : tensor<i1>
      fsdp.advance if %ok
    }
    ```
  }];
  let arguments = (ins FSDP_ScalarI1:$ok);
  let assemblyFormat = "`if` $ok attr-dict";
  let hasVerifier = 1;
}

def FSDP_SquareSumOp : FSDP_Op<"square_sum", [Pure, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>]> {
  let summary = "Sum of the squares of all elements of shards, in double";
  let description = [{
    The padding of a shard is zero and does not contribute.

    Constraints:
    - (C1) there are 1 to 24 shards.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %g = arith.constant dense<1.0> : tensor<8xf32>
        %h = arith.constant dense<2.0> : tensor<4xf32>
        %s = fsdp.square_sum %g, %h : tensor<8xf32>, tensor<4xf32>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<FSDP_FloatTensor>:$inputs);
  let results = (outs FSDP_ScalarF64:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasVerifier = 1;
}

def FSDP_OptimizerStepOp : FSDP_Op<"optimizer_step", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InLocalPhase, InScheduledPhase,
    MemoryEffects<[MemRead<FSDP_StepStateResource>, MemRead<FSDP_BadGradientResource>,
                   MemWrite<FSDP_BadGradientResource>]>]> {
  let summary = "Apply the optimizer's rule to one shard";
  let description = [{
    Takes parameter shard, gradient shard and state shards and yields the new parameter and states;
    with `ok` false they are the old ones, and the update notes, after the step state, the first parameter whose
    gradient is not finite. It is elementwise, so results may be written to the
    buffers of the operands. Bias correction uses the count of updates in the step state. Weight
    decay applies to the elements of the members of `storage` whose file rank is two or more.
    A `deferred` update is performed after its own step has been advanced, in the next step or in a drain: its own update is among
    those that the step state has counted, so bias correction uses the count less one. Gradient, rate, scale and `ok` are those of its step.

    Constraints:
    - (C1) there are as many states as the optimizer has, each of the shard's type.
    - (C2) `storage` names a `fsdp.storage` of the shard's type.

    Example:
    ```mlir
    fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
    fsdp.storage @s : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %p = fsdp.load @s "parameter" : tensor<8xf32>
        %g = arith.constant dense<1.0> : tensor<8xf32>
        %scale = arith.constant dense<1.0> : tensor<f32>
        %ok = arith.constant dense<true> : tensor<i1>
        %lr = fsdp.learning_rate <sgd, lr = 0.1>
        %p1 = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %g states() lr %lr scale %scale if %ok : tensor<8xf32> states 0
        fsdp.store %p1, @s "parameter" : tensor<8xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_OptimizerAttr:$optimizer, FlatSymbolRefAttr:$storage,
                       FSDP_FloatTensor:$parameter, FSDP_FloatTensor:$gradient,
                       Variadic<FSDP_FloatTensor>:$states,
                       FSDP_ScalarF32:$lr, FSDP_ScalarF32:$scale, FSDP_ScalarI1:$ok, UnitAttr:$deferred);
  let results = (outs FSDP_FloatTensor:$new_parameter, Variadic<FSDP_FloatTensor>:$new_states);
  let assemblyFormat = [{
    $optimizer $storage $parameter `,` $gradient `states` `(` $states `)` `lr` $lr `scale` $scale `if` $ok
    (`deferred` $deferred^)? attr-dict `:` custom<ShardTypes>(type($parameter), type($gradient), type($states), type($new_parameter), type($new_states))
  }];
}

#endif // FSDP_OPTIMIZER_OPS_TD
