//===- FSDPLocalOps.td - storage and views of one rank --------------------===//

#ifndef FSDP_LOCAL_OPS_TD
#define FSDP_LOCAL_OPS_TD

include "dialect/fsdp/FSDPModuleOps.td"
include "dialect/nn/NNInterfaces.td"

def FSDP_LoadOp : FSDP_Op<"load", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InLocalPhase, MemoryEffects<[MemRead<FSDP_ParameterResource>]>]> {
  let summary = "Read a rank's tensor of a storage: the shard, a state or the copy";
  let description = [{
    `what` is "parameter", "copy" or the name of a state.

    Constraints:
    - (C1) the symbol names a `fsdp.storage` that keeps a tensor of that name and of the result's type.

    Example:
    ```mlir
    fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
    fsdp.storage @s : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %p = fsdp.load @s "parameter" : tensor<8xf32>
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$storage, StrAttr:$what);
  let results = (outs FSDP_FloatTensor:$result);
  let assemblyFormat = "$storage $what attr-dict `:` type($result)";
}

def FSDP_StoreOp : FSDP_Op<"store", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InLocalPhase, MemoryEffects<[MemWrite<FSDP_ParameterResource>]>]> {
  let summary = "Replace a rank's tensor of a storage: the shard, a state or the copy";
  let description = [{
    `what` is "parameter", "copy" or the name of a state.

    Constraints:
    - (C1) the symbol names a `fsdp.storage` that keeps a tensor of that name and of the value's type.

    Example: see `fsdp.optimizer_step`.
  }];
  let arguments = (ins FSDP_FloatTensor:$value, FlatSymbolRefAttr:$storage, StrAttr:$what);
  let assemblyFormat = "$value `,` $storage $what attr-dict `:` type($value)";
}

def FSDP_CarryLoadOp : FSDP_Op<"carry_load", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InGlobalPhase, InLocalPhase, MemoryEffects<[MemRead<FSDP_ParameterResource>]>]> {
  let summary = "Read the contents of a carried tensor";
  let description = [{
    The contents stored last, by an earlier segment or earlier in this one.

    Constraints:
    - (C1) the symbol names a `fsdp.carried` of the result's type.

    Example: see `fsdp.carry_store`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$carried);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$carried attr-dict `:` type($result)";
}

def FSDP_CarryStoreOp : FSDP_Op<"carry_store", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    InGlobalPhase, InLocalPhase, MemoryEffects<[MemWrite<FSDP_ParameterResource>]>]> {
  let summary = "Replace the contents of a carried tensor";
  let description = [{
    The op that produces the value writes it directly into the carried tensor, without a copy. It may read the old
    contents element by element; nothing else reads them later.

    Constraints:
    - (C1) the symbol names a `fsdp.carried` of the value's type.

    Example:
    ```mlir
    fsdp.carried @loss.sum : tensor<f64>
    fsdp.program @all role {} {
      fsdp.segment @first train next [@last] {
        %one = arith.constant dense<1.0> : tensor<f64>
        %x = arith.negf %one : tensor<f64>
        fsdp.carry_store %x, @loss.sum : tensor<f64>
      }
      fsdp.segment @last train next [@first] {
        %x = arith.constant dense<1.0> : tensor<f64>
        %sum = fsdp.carry_load @loss.sum : tensor<f64>
        %new = arith.addf %sum, %x : tensor<f64>
        fsdp.carry_store %new, @loss.sum : tensor<f64>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$value, FlatSymbolRefAttr:$carried);
  let assemblyFormat = "$value `,` $carried attr-dict `:` type($value)";
}

def FSDP_ViewOp : FSDP_Op<"view", [Pure, InLocalPhase]> {
  let summary = "A parameter inside a flat unit, without a copy";
  let description = [{
    The elements [offset, offset + size) of the flat value as a tensor in row-major order.

    Constraints:
    - (C1) the range lies inside the flat value, which has rank one; element types are equal.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %flat = arith.constant dense<1.0> : tensor<16xf32>
        %w = fsdp.view %flat at 0 : tensor<16xf32> -> tensor<4x3xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$flat, I64Attr:$offset);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$flat `at` $offset attr-dict `:` type($flat) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_FlattenOp : FSDP_Op<"flatten", [Pure, InLocalPhase, InScheduledPhase]> {
  let summary = "Concatenate tensors into one flat unit, padded with zeros";
  let description = [{
    The operands in row-major order, one after the other, then zeros up to the size of the result. Each operand
    can be computed at its offset, so that nothing is copied.

    Constraints:
    - (C1) the operands fit; element types are equal; the result has rank one.

    Example:
    ```mlir
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %a = arith.constant dense<1.0> : tensor<4x3xf32>
        %b = arith.constant dense<1.0> : tensor<3xf32>
        %flat = fsdp.flatten %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<16xf32>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<FSDP_Tensor>:$inputs);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def FSDP_MaskPaddingOp : FSDP_Op<"mask_padding", [Pure, InLocalPhase, InScheduledPhase,
    SameOperandsAndResultType, DeclareOpInterfaceMethods<KernelOpInterface, ["isElementwise", "isCheap"]>]> {
  let summary = "Overwrite the padding of an unevenly split dimension";
  let description = [{
    Dimension `dim` is this rank's part of a global dimension of `size` elements split over
    `over`, in parts of the size that the value has there. Elements whose global index is `size` or more become `fill`. Required
    before every reduction along such a dimension (0 for sums, -inf for maxima).

    Constraints:
    - (C1) `dim` is a dimension of the value and its size at least `size` ceil-divided by the ranks over `over`,
      which are distinct axes of the mesh.
    - (C2) `fill` is an infinity or a value of the element type.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x64xf32>
        %m = fsdp.mask_padding %x dim 0 of 10 over ["fsdp"] fill 0.0 : tensor<3x64xf32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, I64Attr:$size, StrArrayAttr:$over, F64Attr:$fill);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` $dim `of` $size `over` $over `fill` custom<PlainF64>($fill) attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def FSDP_IndexTensor : NN_SizedTensorOf<[I32, I64]>;

def FSDP_ShardIndicesOp : FSDP_Op<"shard_indices", [Pure, InLocalPhase, InScheduledPhase,
    SameOperandsAndResultType, DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall", "getIndexBound"]>]> {
  let summary = "Convert global indices of a split dimension to those of this rank";
  let description = [{
    The integers are indices into a dimension of `size` elements (rows of a table, classes), of which each rank has
    c = ceil(`size` / ranks over `over`) consecutive ones, or `part` where the dimension is padded. On the rank with index r, i becomes i - c*r if this is 0 to c - 1,
    and -1 if i is an element of another rank. An index outside the whole dimension becomes c, which is invalid on
    every rank, in the interpreter, and ends a generated program with an error.

    Constraints:
    - (C1) `size` is 1 to 2^48; axes are distinct axes of the mesh.
    - (C2) `part` is more than ceil(`size` / ranks) and at most 2^48.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=1, "tensor"=2]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %ids = fsdp.input "ids" sample_dim 0 : tensor<8x16xi32>
        %own = fsdp.shard_indices %ids of 50257 over ["tensor"] part 25152 : tensor<8x16xi32>
      }
    }
    ```
  }];
  let arguments = (ins FSDP_IndexTensor:$indices, I64Attr:$size, StrArrayAttr:$over, OptionalAttr<I64Attr>:$part);
  let results = (outs FSDP_IndexTensor:$result);
  let assemblyFormat = "$indices `of` $size `over` $over (`part` $part^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many consecutive elements of the dimension a rank has, padding included.
    int64_t getPartSize();
  }];
}

def FSDP_ShardSizeOp : FSDP_Op<"shard_size", [Pure, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>]> {
  let summary = "How many elements of a split dimension this rank has";
  let description = [{
    Of a dimension of `size` elements over R ranks, the rank with index r has c = ceil(`size` / R) elements, or `part`, of which
    max(0, min(c, `size` - r*c)) are elements of the dimension; those after them are padding.

    Constraints:
    - (C1) `size` is 1 to 2^48; axes are distinct axes of the mesh.
    - (C2) `part` is more than ceil(`size` / ranks) and at most 2^48.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=1, "tensor"=2]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %n = fsdp.shard_size of 50257 over ["tensor"] part 25152
      }
    }
    ```
  }];
  let arguments = (ins I64Attr:$size, StrArrayAttr:$over, OptionalAttr<I64Attr>:$part);
  let results = (outs FSDP_ScalarI64:$count);
  let assemblyFormat = "`of` $size `over` $over (`part` $part^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many consecutive elements of the dimension a rank has, padding included.
    int64_t getPartSize();
  }];
}

def FSDP_ShardOffsetOp : FSDP_Op<"shard_offset", [Pure, InLocalPhase, InScheduledPhase,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelCall"]>]> {
  let summary = "Where this rank's part of a split dimension begins";
  let description = [{
    Of a dimension of `size` elements over R ranks, the rank with index r has the c = ceil(`size` / R) elements, or `part`, from
    r*c on. Where it has none (`fsdp.shard_size` is 0), r*c may be past the last element.

    Constraints:
    - (C1) `size` is 1 to 2^48; axes are distinct axes of the mesh.
    - (C2) `part` is more than ceil(`size` / ranks) and at most 2^48.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=1, "tensor"=2]>
    fsdp.program @all role {} {
      fsdp.segment @train train next [@train] {
        %first = fsdp.shard_offset of 50257 over ["tensor"] part 25152
      }
    }
    ```
  }];
  let arguments = (ins I64Attr:$size, StrArrayAttr:$over, OptionalAttr<I64Attr>:$part);
  let results = (outs FSDP_ScalarI64:$offset);
  let assemblyFormat = "`of` $size `over` $over (`part` $part^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many consecutive elements of the dimension a rank has, padding included.
    int64_t getPartSize();
  }];
}

#endif // FSDP_LOCAL_OPS_TD
