//===- FSDPRandomOps.td - random numbers that differ in every step ----------------===//

#ifndef FSDP_RANDOM_OPS_TD
#define FSDP_RANDOM_OPS_TD

include "dialect/fsdp/FSDPOptimizerOps.td"
include "dialect/nn/NNInterfaces.td"

def FSDP_AxesOfDimensions : TypedArrayAttrBase<StrArrayAttr, "axes of each dimension">;

def FSDP_DropoutOp : FSDP_Op<"dropout", [InGlobalPhase, InLocalPhase, InScheduledPhase,
    SameOperandsAndResultType, MemoryEffects<[MemRead<FSDP_StepStateResource>]>,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall", "getPrecisionClass", "isElementwise"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Replace random elements by zero";
  let description = [{
    For each element a random number in [0, 1) is drawn: if it is below `rate` the result is 0, otherwise the
    element times 1 / (1 - `rate`). The random number is a function of the seed and the step, which are read from
    the step state, of `name`, and of the row-major index of the element in the global tensor: it is the
    same on every mesh, in every schedule, and in backward, whose op has the same name. An
    evaluation step has no dropout (`fsdp-derive-evaluation`).

    In the local form dimension i is this rank's part of a dimension of the i-th size of `part_of`, split
    over the i-th list of `over`; the global index follows from them. Without them the tensor is unsharded. With
    `microbatches` K `along` D, the rank's part of dimension D is cut once more into K consecutive parts; the
    number of the current one is `at`, or else in the step state (`fsdp.next_microbatch`).

    Constraints:
    - (C1) 0 <= `rate` < 1.
    - (C2) `name` is not empty.
    - (C3) `part_of` and `over` have one entry per dimension.
    - (C4) the axes in `over` are axes of the mesh, each named once.
    - (C5) each dimension is its size in `part_of` ceil-divided by the ranks over its axes, dimension `along` once more by
      `microbatches`, which is at least 1.
    - (C6) `at` is at least 0 and less than `microbatches`, and given with it only.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @train train optimizer <sgd, lr = 0.1> {
      %x = fsdp.input "x" sample_dim 0 : tensor<10x64xf32>
      %y = fsdp.dropout %x rate 1.0e-01 name "h.0.drop" : tensor<10x64xf32>
    }
    fsdp.program @all role {} {
      fsdp.segment @train_local train next [@train_local] {
        %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x64xf32>
        %y = fsdp.dropout %x rate 1.0e-01 name "h.0.drop" part_of [10, 64] over [["fsdp"], []]
            : tensor<3x64xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_FloatTensor:$input, F64Attr:$rate, StrAttr:$name,
                       OptionalAttr<DenseI64ArrayAttr>:$part_of,
                       OptionalAttr<FSDP_AxesOfDimensions>:$over, OptionalAttr<I64Attr>:$microbatches,
                       OptionalAttr<I64Attr>:$along, OptionalAttr<I64Attr>:$microbatch);
  let results = (outs FSDP_FloatTensor:$result);
  let assemblyFormat = [{
    $input `rate` custom<PlainF64>($rate) `name` $name (`part_of` $part_of^ `over` $over)?
    (`microbatches` $microbatches^ `along` $along)? (`at` $microbatch^)? attr-dict
    `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The shape of the tensor that all ranks hold together.
    ::llvm::ArrayRef<int64_t> getGlobalShape() {
      return getPartOf() ? *getPartOf() : ::llvm::cast<::mlir::RankedTensorType>(getType()).getShape();
    }
    /// The axes that dimension `dim` is split over, major first.
    ::llvm::SmallVector<::mlir::StringAttr> getAxes(int64_t dim);
    /// The size of dimension `dim` of one rank's part of all microbatches, padding included.
    int64_t getRankDimSize(int64_t dim);
  }];
}

#endif // FSDP_RANDOM_OPS_TD
