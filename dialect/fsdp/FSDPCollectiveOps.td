//===- FSDPCollectiveOps.td - collectives ---------------------------------===//

#ifndef FSDP_COLLECTIVE_OPS_TD
#define FSDP_COLLECTIVE_OPS_TD

include "dialect/fsdp/FSDPModuleOps.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let description = [{
    What all collectives have in common. A collective runs over the ranks that differ only along `over`;
    its shared rules (known axes, at least one, none twice) are verified once, here.
  }];
  let cppNamespace = "::mlir::fsdp";
  let methods = [
    InterfaceMethod<"The mesh axes that the collective runs over, major first.",
                    "::llvm::SmallVector<::mlir::StringAttr>", "getAxes">,
    InterfaceMethod<"Bytes of the unsharded (gathered or reduced) value of one call.",
                    "int64_t", "getBytes">,
  ];
  let verify = [{ return ::mlir::fsdp::detail::verifyCollective($_op); }];
}

class FSDP_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : FSDP_Op<mnemonic, !listconcat([InLocalPhase, InScheduledPhase,
        DeclareOpInterfaceMethods<CollectiveOpInterface>], traits)>;

def FSDP_ReduceKind : I32EnumAttr<"ReduceKind", "how ranks' values are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>]> {
  let cppNamespace = "::mlir::fsdp";
  let genSpecializedAttr = 0;
}
def FSDP_ReduceKindAttr : EnumAttr<FSDP_Dialect, FSDP_ReduceKind, "reduce_kind">;

def FSDP_AllGatherOp : FSDP_CollectiveOp<"all_gather"> {
  let summary = "Concatenate the shards of all ranks along a dimension";
  let description = [{
    Rank i of n holds elements [i*c, (i+1)*c) of dimension `dim`, c being the operand's size
    there; the result has all of them, on every rank. Padding past the result's size is dropped, so uneven
    sizes need no other op.

        before:  rank 0 [a0 a1]   rank 1 [a2 a3]   rank 2 [a4 --]
        after:   every rank [a0 a1 a2 a3 a4]

    The result is allocated storage: two gathers of one shard are never merged, and none is
    hoisted; an unused one is removed.

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) along `dim`, the operand has ceil(result size / n) or, for a flat unit's shard, at least that
      many elements; other dimensions and the element types are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %s = arith.constant dense<1.0> : tensor<3xf32>
        %w = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<3xf32> -> tensor<10xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs Res<FSDP_Tensor, "gathered storage", [MemAlloc]>:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_ReduceScatterOp : FSDP_CollectiveOp<"reduce_scatter", [Pure]> {
  let summary = "Sum over all ranks and keep this rank's part along a dimension";
  let description = [{
    The elementwise sum (in rank order) of the operands, of which rank i of n keeps elements [i*c, (i+1)*c) of
    dimension `dim`, c being the result's size there. Elements past the operand's size are zero.

        before:  rank 0 [a0 a1 a2]       rank 1 [b0 b1 b2]
        after:   rank 0 [a0+b0 a1+b1]    rank 1 [a2+b2 0]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) along `dim`, the result has ceil(operand size / n) or, for a flat unit's shard, at least that
      many elements; other dimensions and the element types are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %g = arith.constant dense<1.0> : tensor<10xf32>
        %s = fsdp.reduce_scatter %g dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<3xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_AllReduceOp : FSDP_CollectiveOp<"all_reduce", [Pure, SameOperandsAndResultType]> {
  let summary = "Sum or maximize over all ranks";
  let description = [{
    Every rank receives the elementwise sum (in rank order) or maximum of all ranks' operands.

        before:  rank 0 [a0 a1]          rank 1 [b0 b1]
        after:   both ranks [a0+b0 a1+b1]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %g = arith.constant dense<1.0> : tensor<f64>
        %s = fsdp.all_reduce sum %g over ["fsdp"] : tensor<f64>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_ReduceKindAttr:$kind, FSDP_Tensor:$input, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "`` $kind $input `over` $over attr-dict `:` type($result)";
}

def FSDP_AllSliceOp : FSDP_CollectiveOp<"all_slice", [Pure]> {
  let summary = "Keep this rank's part of a value that every rank has";
  let description = [{
    Rank i of n keeps elements [i*c, (i+1)*c) of dimension `dim`, c = ceil(size/n); elements past the operand's size are
    zero. Moves nothing between ranks.

        before:  both ranks [a0 a1 a2]
        after:   rank 0 [a0 a1]   rank 1 [a2 0]

    Constraints:
    - (C1) axes are distinct axes of the mesh, at least one.
    - (C2) along `dim`, the result has ceil(operand size / n) elements, of rank one also more (the shard of a flat unit); other
      dimensions and the element types are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %w = arith.constant dense<1.0> : tensor<10x2xf32>
        %s = fsdp.all_slice %w dim 0 over ["fsdp"] : tensor<10x2xf32> -> tensor<3x2xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

#endif // FSDP_COLLECTIVE_OPS_TD
