//===- NNGenerationOps.td - attention to tokens of earlier steps ---------===//

#ifndef NN_GENERATION_OPS_TD
#define NN_GENERATION_OPS_TD

include "dialect/nn/NNBase.td"

def NN_WriteRowsOp : NN_ComputeOp<"write_rows",
    [AllElementTypesMatch<["table", "rows", "result"]>, AllTypesMatch<["table", "result"]>],
    ["getKernelCall", "getInPlacePairs"]> {
  let summary = "Replace elements of a dimension by those of another tensor";
  let description = [{
    The table, whose elements at index `positions[b, s]` along `dim` of sample b are those of `rows` at index s. Dimension 0
    are samples. Nothing is written for a position outside of the table. If two positions of a sample are equal, one of the
    two is written.

    Constraints:
    - (C1) `dim` is a dimension of the table after the first, and `rows` has the sizes of the table in all other dimensions.
    - (C2) `positions` has type i32, and the samples and the size along `dim` of `rows`.

    Example:
    ```mlir
    %y = nn.write_rows %table, %rows, %positions dim 2
        : tensor<1x4x16x64xf32>, tensor<1x4x1x64xf32>, tensor<1x1xi32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$table, NN_FloatTensor:$rows, NN_IntTensor:$positions, I64Attr:$dim);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat =
      "$table `,` $rows `,` $positions `dim` $dim attr-dict `:` type($table) `,` type($rows) `,` type($positions)";
  let hasVerifier = 1;
}

def NN_CachedAttentionOp : NN_ComputeOp<"cached_attention",
    [AllTypesMatch<["q", "out"]>, AllTypesMatch<["k", "v"]>],
    ["getKernelCall", "isContraction", "verifyCuda"]> {
  let summary = "Causal attention of a few queries to the keys and values of all positions";
  let description = [{
    The queries of sample b are those at the positions `positions[b, 0]`, `positions[b, 0] + 1` and so on, and each attends to the
    keys at its position and before. `order` names the dimensions of `q` and of the result, as in `nn.attention`; keys and values are
    (batch, groups, positions, width). With a `window` W a query at position p attends to the keys p - W + 1 to p only;
    with `softcap` c the scaled products s are replaced by `c tanh(s / c)`.

    Constraints:
    - (C1) `order` has `b`, `h` and `t` once each, and ends with `d`.
    - (C2) `q` has as many dimensions as the order, and the type of the result.
    - (C3) `k` and `v` have one type, the batch, the width and the element type of `q`; their groups divide the heads.
    - (C4) `positions` has type i32 and is (batch, queries).
    - (C5) there are at most as many queries as keys; `window` and `softcap` are positive.

    Example:
    ```mlir
    %out = nn.cached_attention "b t h d" %q, %k, %v, %positions scale 0.125
        : tensor<1x1x12x64xf32>, tensor<1x4x16x64xf32>, tensor<1x1xi32>
    ```
  }];
  let arguments = (ins StrAttr:$order, NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v,
                       NN_IntTensor:$positions, F64Attr:$scale, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$softcap);
  let results = (outs NN_FloatTensor:$out);
  let assemblyFormat = [{
    $order $q `,` $k `,` $v `,` $positions `scale` $scale (`window` $window^)? (`softcap` $softcap^)?
    attr-dict `:` type($q) `,` type($k) `,` type($positions)
  }];
  let hasVerifier = 1;
}

#endif // NN_GENERATION_OPS_TD
