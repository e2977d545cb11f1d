//===- FSDPSampleOps.td - the number of valid samples of a batch ----------===//
//
// The last batch of a validation set may have fewer samples than the batch size of the program. The number of valid samples
// is known at run time only: it is in the step state, which ops over samples read.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_SAMPLE_OPS_TD
#define FSDP_SAMPLE_OPS_TD

include "dialect/fsdp/FSDPOptimizerOps.td"
include "dialect/nn/NNInterfaces.td"

def FSDP_SampleCountOp : FSDP_Op<"sample_count", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    MemoryEffects<[MemRead<FSDP_StepStateResource>]>]> {
  let summary = "The number of valid samples in this batch";
  let description = [{
    Reads from the step state how many of the `of` samples of the global batch are valid; they come first.
    The others repeat samples and must not affect logged values.

    Constraints:
    - (C1) `of` is at least 1 and at most 2^48.

    Example:
    ```mlir
    fsdp.step @eval evaluate {
      %n = fsdp.sample_count of 8
    }
    ```
  }];
  let arguments = (ins I64Attr:$batch);
  let results = (outs FSDP_ScalarI64:$count);
  let assemblyFormat = "`of` $batch attr-dict";
  let hasVerifier = 1;
}

def FSDP_MicrobatchSamplesOp : FSDP_Op<"microbatch_samples", [InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "How many samples of this rank's part of this microbatch count";
  let description = [{
    Of a batch of `of` samples, a rank takes c = ceil(of / ranks over `over`), as in `fsdp.input`, in `microbatches` K consecutive
    parts of p = ceil(c / K). Part m, `at` or else the one in the step state, has max(0, min(p, min(c, n - r*c) - m*p)) samples of the
    batch on the rank with index r, n being `of`, or with `counted` the number of samples that count (`fsdp.sample_count`) if that is less; they come
    first, and those after them have weight 0. With `at` and without `counted` the number is a constant of the rank: the op reads nothing.

    Constraints:
    - (C1) `of` is 1 to 2^48, `microbatches` at least 1.
    - (C2) axes are distinct axes of the mesh.
    - (C3) `at` is at least 0 and less than `microbatches`.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @middle train next [@middle] {
        %n = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 2
        %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 2 : tensor<2x64xf32>
        %m = fsdp.mask_samples %x, %n dim 0 fill 0.0 : tensor<2x64xf32>
        fsdp.next_microbatch of 2
      }
    }
    ```
  }];
  let arguments = (ins I64Attr:$batch, UnitAttr:$counted, StrArrayAttr:$over, I64Attr:$microbatches,
                       OptionalAttr<I64Attr>:$microbatch);
  let results = (outs FSDP_ScalarI64:$count);
  let assemblyFormat = "`of` $batch (`counted` $counted^)? `over` $over `microbatches` $microbatches (`at` $microbatch^)? attr-dict";
  let hasVerifier = 1;
}

def FSDP_NextMicrobatchOp : FSDP_Op<"next_microbatch", [InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>,
    MemoryEffects<[MemRead<FSDP_StepStateResource>, MemWrite<FSDP_StepStateResource>]>]> {
  let summary = "Advance to the next microbatch of the step";
  let description = [{
    Increments the index of the microbatch in the step state; after the last of `of` microbatches it is that of the first one again.

    Constraints:
    - (C1) `of` is at least 1.

    Example: see `fsdp.microbatch_samples`.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$microbatches);
  let assemblyFormat = "`of` $microbatches attr-dict";
}

def FSDP_MaskSamplesOp : FSDP_Op<"mask_samples", [Pure, InGlobalPhase, InLocalPhase, InScheduledPhase,
    AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["isElementwise", "isCheap"]>]> {
  let summary = "Overwrite invalid samples";
  let description = [{
    Dimension `dim` runs over the samples of the batch, `rows` elements for each of them, one sample after
    another. Elements that belong to sample `count` or a later one become `fill`. Required before every
    reduction over samples in an evaluation step (0 for sums, -inf for maxima).

    In the local form the dimension is this rank's part of one of `shard_of` elements, split over `over`.

    Constraints:
    - (C1) `dim` is a dimension of the value and its global size is a multiple of `rows`, which is at least 1.
    - (C2) `shard_of` and `over` are given together; the local size is `shard_of` ceil-divided by the ranks over `over`.
    - (C3) `fill` is an infinity or a value of the element type.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %n = fsdp.sample_count of 10
      %x = fsdp.input "x" sample_dim 0 : tensor<10x64xf32>
      %m = fsdp.mask_samples %x, %n dim 0 fill 0.0 : tensor<10x64xf32>
    }
    fsdp.program @all role {} {
      fsdp.segment @eval_local evaluate next [@eval_local] {
        %n = fsdp.sample_count of 10
        %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x64xf32>
        %m = fsdp.mask_samples %x, %n dim 0 shard_of 10 over ["fsdp"] fill 0.0 : tensor<3x64xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, FSDP_ScalarI64:$count, I64Attr:$dim,
                       DefaultValuedAttr<I64Attr, "1">:$rows, OptionalAttr<I64Attr>:$shard_of,
                       OptionalAttr<StrArrayAttr>:$over, F64Attr:$fill);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $count `dim` $dim (`rows` $rows^)? (`shard_of` $shard_of^ `over` $over)?
    `fill` custom<PlainF64>($fill) attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_OutputSumOp : FSDP_Op<"output_sum", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    MemoryEffects<[MemWrite<FSDP_OutputResource>]>]> {
  let summary = "Output a value of an evaluation as a sum and a weight";
  let description = [{
    The host adds up sums and weights over all batches of the validation set and logs the quotient of the two under
    `name`, so that every sample counts once and a batch may have weight 0.

    Example:
    ```mlir
    fsdp.step @eval evaluate {
      %sum = arith.constant dense<3.0> : tensor<f64>
      %weight = arith.constant dense<2.0> : tensor<f64>
      fsdp.output_sum "loss" %sum over %weight
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, FSDP_ScalarF64:$sum, FSDP_ScalarF64:$weight);
  let assemblyFormat = "$name $sum `over` $weight attr-dict";
}

#endif // FSDP_SAMPLE_OPS_TD
