//===- NNAttentionOps.td - attention and rotary positions ----------------===//

#ifndef NN_ATTENTION_OPS_TD
#define NN_ATTENTION_OPS_TD

include "dialect/nn/NNBase.td"

def NN_AttentionOp : NN_ComputeOp<"attention", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, AllTypesMatch<["q", "out"]>,
    AllTypesMatch<["k", "v"]>]> {
  let summary = "Softmax attention, causal or not, with grouped heads";
  let description = [{
    `q` and `out` are (batch, heads, queries, width), `k` and `v` (batch, groups, keys, width); head h
    attends to group `h / (heads / groups)`. For each query:
    `out = sum_s softmax_s(scale * q . k[s]) * v[s]`; `log_sum_exp` is that of the scaled products. With
    `causal`, query t sees the keys `s <= t + keys - queries`. Computed by blocks: a matrix of queries
    by keys never exists. Nothing flows back through `log_sum_exp`, which is there for backward.

    Constraints:
    - (C1) `q` and `k` have rank 4, and the same batch and width.
    - (C2) the groups divide the heads.
    - (C3) `log_sum_exp` has the shape of `q` without its width.
    - (C4) there is a key, and with `causal` as many keys as queries or more.
    - (C5) the element types of `q`, `k` and `v` are equal; `log_sum_exp` has that of their sums (f32 for 16 bits).

    Example:
    ```mlir
    %out, %lse = nn.attention %q, %k, %v scale 0.125 causal
        : tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32> -> tensor<8x12x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v, F64Attr:$scale,
                       UnitAttr:$causal);
  let results = (outs NN_FloatTensor:$out, NN_FloatTensor:$log_sum_exp);
  let assemblyFormat = [{
    $q `,` $k `,` $v `scale` $scale (`causal` $causal^)? attr-dict `:` type($q) `,` type($k) `->`
    type($log_sum_exp)
  }];
  let hasVerifier = 1;
}

def NN_AttentionGradOp : NN_ComputeOp<"attention_grad", [
    AllTypesMatch<["q", "out", "d_out", "d_q"]>, AllTypesMatch<["k", "v", "d_k", "d_v"]>]> {
  let summary = "Cotangents of the operands of an attention";
  let description = [{
    Recomputes the probabilities `p = exp(scale * q . k - log_sum_exp)` by blocks. With
    `d_p = d_out . v` and `d_s = p * (d_p - sum(d_out * out))`: `d_q = scale * d_s . k`,
    `d_k = scale * d_s . q`, `d_v = p . d_out`, the last two summed over the heads of a group.

    Constraints:
    - (C1) to (C5) of `nn.attention`.

    Example:
    ```mlir
    %d_q, %d_k, %d_v = nn.attention_grad %q, %k, %v, %out, %lse, %d_out scale 0.125 causal
        : tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v,
                       NN_FloatTensor:$out, NN_FloatTensor:$log_sum_exp, NN_FloatTensor:$d_out,
                       F64Attr:$scale, UnitAttr:$causal);
  let results = (outs NN_FloatTensor:$d_q, NN_FloatTensor:$d_k, NN_FloatTensor:$d_v);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $out `,` $log_sum_exp `,` $d_out `scale` $scale (`causal` $causal^)?
    attr-dict `:` type($q) `,` type($k) `,` type($log_sum_exp)
  }];
  let hasVerifier = 1;
}

def NN_RopeOp : NN_ComputeOp<"rope", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, AllTypesMatch<["x", "y"]>]> {
  let summary = "Rotate pairs of elements by angles that grow with the position";
  let description = [{
    `x` is (..., positions, width). The elements i and i + width/2 of a row are a point in the plane
    that is turned by `t * theta^(-2 i / width)` at position t: `(a, b)` becomes
    `(a cos - b sin, b cos + a sin)`. With `inverse` it is turned back, which is also the cotangent.

    Constraints:
    - (C1) `x` has positions and a width (rank two or more), and the width is even.
    - (C2) `theta` is positive.

    Example:
    ```mlir
    %y = nn.rope %x theta 1.0e+04 : tensor<8x12x16x64xf32>
    %z = nn.rope %y theta 1.0e+04 inverse : tensor<8x12x16x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, F64Attr:$theta, UnitAttr:$inverse);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x `theta` $theta (`inverse` $inverse^)? attr-dict `:` type($x)";
  let hasVerifier = 1;
}

#endif // NN_ATTENTION_OPS_TD
