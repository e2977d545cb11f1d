//===- FSDPManualOps.td - parts of a step in the terms of one rank --------===//

#ifndef FSDP_MANUAL_OPS_TD
#define FSDP_MANUAL_OPS_TD

include "dialect/fsdp/FSDPGlobalOps.td"

def FSDP_ShardingsAttr : TypedArrayAttrBase<FSDP_ShardingAttr, "an array of shardings">;

def FSDP_ManualOp : FSDP_Op<"manual", [InGlobalPhase, RecursiveMemoryEffects, IsolatedFromAbove]> {
  let summary = "A part of a step in local terms, with explicit collectives over some axes of the mesh";
  let description = [{
    Each rank along the axes `over` computes the body on its own parts of the operands. `in_shardings` and `out_shardings` say, for each
    operand and result, which of these axes split which dimension; `unreduced` names those over which the value is a sum of what
    the ranks have, and it is replicated over the others. The arguments of the body have the sizes of one rank. Axes of the mesh that are not in
    `over` are propagated through the body as through the rest of the step.

    Inside, each value is, for each axis in `over`, *invariant* (equal on all ranks, and so is its cotangent), *varying* (each rank
    has its own) or *partial* (the terms of a sum that is not formed yet). `fsdp.psum` makes varying and partial values invariant. Where an
    op has an invariant and a varying or partial operand, `fsdp-inline-manual` inserts `fsdp.pvary`. Only ops that are linear in it take a
    partial value, beside invariant values.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one, and none of a region around this one.
    - (C2) there is one sharding for each operand and each result, of its rank, closed, over axes in `over`; dimensions
      divide by the ranks that split them.
    - (C3) arguments and yielded values have the local types of operands and results.
    - (C4) the body contains computation, `fsdp.axis_index`, the collectives `fsdp.p...` over axes in `over`, and other regions.
    - (C5) a result that is replicated over an axis is invariant over it; one that is split over it is not partial; one that is unreduced
      over it is not invariant.
    - (C6) an op with a partial operand is linear in it, and has no varying operand beside it.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %sum = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {} ]>] out [#fsdp.sharding<@mesh, []>]
          : (tensor<8x4xf32>) -> tensor<f64> {
      ^bb0(%own: tensor<2x4xf32>):
        %part = nn.reduce sum "b d ->" %own : tensor<2x4xf32> -> tensor<f64>
        %all = fsdp.psum %part over ["fsdp"] : tensor<f64>
        fsdp.yield %all : tensor<f64>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<FSDP_Tensor>:$inputs, StrArrayAttr:$over, FSDP_ShardingsAttr:$in_shardings,
                       FSDP_ShardingsAttr:$out_shardings);
  let results = (outs Variadic<FSDP_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `over` $over `in` $in_shardings `out` $out_shardings attr-dict-with-keyword
    `:` functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

/// An op that stands where a region was, or in one.
class FSDP_ManualPhaseOp<string mnemonic, list<Trait> traits = []>
    : FSDP_Op<mnemonic, !listconcat([InGlobalPhase,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getLinearity"]>,
        DeclareOpInterfaceMethods<KernelOpInterface, ["getPrecisionClass"]>], traits)>;

class FSDP_ManualBoundaryOp<string mnemonic>
    : FSDP_ManualPhaseOp<mnemonic, [Pure, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let arguments = (ins FSDP_Tensor:$input, FSDP_ShardingAttr:$sharding, StrArrayAttr:$over);
  let results = (outs FSDP_Tensor:$result);
  let assemblyFormat = "$input $sharding `over` $over attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def FSDP_EnterManualOp : FSDP_ManualBoundaryOp<"enter_manual"> {
  let summary = "The part of a value that each rank has in local terms";
  let description = [{
    Where an operand enters a `fsdp.manual` region that `fsdp-inline-manual` has replaced by its body: the result is, on each rank along
    `over`, its part by `sharding`; over axes that `sharding` does not name, the whole value; over its `unreduced` axes, terms whose
    sum is the value. What depends on the result is in local terms until it reaches a `fsdp.exit_manual`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one; `sharding` is closed, over some of them.
    - (C2) the result has the size of one part along each dimension; parts are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
    }
    ```
  }];
}

def FSDP_ExitManualOp : FSDP_ManualBoundaryOp<"exit_manual"> {
  let summary = "The value whose parts the ranks have in local terms";
  let description = [{
    Where a result leaves a `fsdp.manual` region that `fsdp-inline-manual` has replaced by its body: the opposite of `fsdp.enter_manual`.
    Over axes that `sharding` does not name, all ranks have the same operand; over its `unreduced` axes the result is the sum of
    the operands.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one; `sharding` is closed, over some of them.
    - (C2) the operand has the size of one part along each dimension; parts are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
      %whole = fsdp.exit_manual %own <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<2x4xf32> -> tensor<8x4xf32>
    }
    ```
  }];
}

/// A collective in local terms, over some of the axes of its region.
class FSDP_ManualCollectiveOp<string mnemonic, list<Trait> traits = []>
    : FSDP_ManualPhaseOp<mnemonic, traits> {
  let results = (outs FSDP_Tensor:$result);
  let hasVerifier = 1;
}
class FSDP_SameTypeCollectiveOp<string mnemonic, list<Trait> traits = []>
    : FSDP_ManualCollectiveOp<mnemonic, !listconcat([Pure, SameOperandsAndResultType], traits)> {
  let arguments = (ins FSDP_Tensor:$input, StrArrayAttr:$over);
  let assemblyFormat = "$input `over` $over attr-dict `:` type($result)";
}

def FSDP_PsumOp : FSDP_SameTypeCollectiveOp<"psum", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Sum over ranks, in a manual region";
  let description = [{
    The sum of the operands of all ranks along `over`, which is invariant over these axes. An operand that is invariant itself counts once
    for each rank. The cotangent of the operand is that of the result, without communication. `fsdp-partition` makes it a
    `fsdp.all_reduce`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.

    Example: see `fsdp.manual`.
  }];
}

def FSDP_PmaxOp : FSDP_SameTypeCollectiveOp<"pmax"> {
  let summary = "Maximum over ranks, in a manual region";
  let description = [{
    The maximum of the operands of all ranks along `over`, which is invariant over these axes. It has no derivative. `fsdp-partition` makes
    it a `fsdp.all_reduce`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
      %max = fsdp.pmax %own over ["fsdp"] : tensor<2x4xf32>
    }
    ```
  }];
}

def FSDP_PvaryOp : FSDP_SameTypeCollectiveOp<"pvary", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Take an invariant value of a manual region as a varying one";
  let description = [{
    The identity: the result counts as varying over `over`. The cotangent of the operand is the sum over these axes of that of
    the result (`fsdp.psum`): what one value does on several ranks adds up. `fsdp-inline-manual` inserts it where an op combines
    an invariant value with a varying one.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one; the operand is invariant over them.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %all = fsdp.enter_manual %x <@mesh, [{}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<8x4xf32>
      %own = fsdp.pvary %all over ["fsdp"] : tensor<8x4xf32>
    }
    ```
  }];
}

def FSDP_PgatherOp : FSDP_ManualCollectiveOp<"pgather", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Concatenate the operands of all ranks, in a manual region";
  let description = [{
    The operands of all ranks along `over`, joined along dimension `dim` in the order of the ranks. The result is varying, as its
    cotangent is: that of the operand is the `fsdp.psum_scatter` of the result's. As `fsdp.read`, and for the same reason, it
    allocates its result: gathers of forward and backward are never merged. Differentiation repeats a gather that depends on parameters
    only where backward needs its result. `fsdp-partition` makes it a `fsdp.all_gather`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.
    - (C2) the result is as many times as long along `dim` as there are ranks, and otherwise as the operand.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
      %all = fsdp.pgather %own dim 0 over ["fsdp"] : tensor<2x4xf32> -> tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let results = (outs Res<FSDP_Tensor, "gathered storage", [MemAlloc]>:$result);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
}

def FSDP_PsumScatterOp : FSDP_ManualCollectiveOp<"psum_scatter", [Pure, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Sum over ranks and keep a part, in a manual region";
  let description = [{
    The sum of the operands of all ranks along `over`, of which each rank keeps its part along dimension `dim`: varying. The cotangent of
    the operand is the `fsdp.pgather` of the result's. `fsdp-partition` makes it a `fsdp.reduce_scatter`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.
    - (C2) the operand is as many times as long along `dim` as there are ranks, and otherwise as the result.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
      %part = fsdp.psum_scatter %own dim 1 over ["fsdp"] : tensor<2x4xf32> -> tensor<2x1xf32>
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$dim, StrArrayAttr:$over);
  let assemblyFormat = "$input `dim` $dim `over` $over attr-dict `:` type($input) `->` type($result)";
}

def FSDP_PswapOp : FSDP_ManualCollectiveOp<"pswap", [Pure, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Exchange parts with all ranks, in a manual region";
  let description = [{
    Each rank along `over` cuts its operand along dimension `split`, sends the i-th part to rank i, and joins what it receives along dimension
    `concat` in the order of the ranks: varying. The cotangent of the operand is the opposite exchange. `fsdp-partition` makes
    it a `fsdp.all_to_all`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.
    - (C2) `split` and `concat` are different dimensions; along `split` the operand is as many times as long as the
      result as there are ranks, along `concat` it is the other way round, and other dimensions are equal.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
      %columns = fsdp.pswap %own split 1 concat 0 over ["fsdp"] : tensor<2x4xf32> -> tensor<8x1xf32>
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, I64Attr:$split, I64Attr:$concat, StrArrayAttr:$over);
  let assemblyFormat = "$input `split` $split `concat` $concat `over` $over attr-dict `:` type($input) `->` type($result)";
}

def FSDP_PpermuteOp : FSDP_ManualCollectiveOp<"ppermute", [Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Receive the value of another rank, in a manual region";
  let description = [{
    Rank i along `over` receives the operand of rank `from`[i], or zeros where that is -1: varying. The cotangent of the operand is
    sent the opposite way. `fsdp-partition` makes it a `fsdp.collective_permute`.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.
    - (C2) `from` has an entry for each rank: a rank, which no other entry is, or -1.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {} ]> over ["fsdp"] : tensor<8x4xf32> -> tensor<2x4xf32>
      %previous = fsdp.ppermute %own from [-1, 0, 1, 2] over ["fsdp"] : tensor<2x4xf32>
    }
    ```
  }];
  let arguments = (ins FSDP_Tensor:$input, DenseI64ArrayAttr:$from, StrArrayAttr:$over);
  let assemblyFormat = "$input `from` $from `over` $over attr-dict `:` type($result)";
}

def FSDP_AxisIndexOp : FSDP_Op<"axis_index", [InGlobalPhase, Pure]> {
  let summary = "The index of the rank along axes, in a manual region";
  let description = [{
    The index of the rank among those along `over`, the first axis being the major one: a varying integer.

    Constraints:
    - (C1) `over` names distinct axes of the mesh, at least one.

    Example:
    ```mlir
    fsdp.mesh @mesh <["fsdp"=4]>
    fsdp.step @eval evaluate {
      %index = fsdp.axis_index over ["fsdp"]
    }
    ```
  }];
  let arguments = (ins StrArrayAttr:$over);
  let results = (outs FSDP_ScalarI64:$result);
  let assemblyFormat = "`over` $over attr-dict";
  let hasVerifier = 1;
}

#endif // FSDP_MANUAL_OPS_TD
