//===- NNAttentionOps.td - attention and rotary positions ----------------===//

#ifndef NN_ATTENTION_OPS_TD
#define NN_ATTENTION_OPS_TD

include "dialect/nn/NNBase.td"

// Queries, keys and values, and the ids of documents.
def NN_AttentionInput : NN_SizedTensorOf<[F32, F64, BF16, F16, I32]>;

def NN_KeyExchange : I32EnumAttr<"KeyExchange", "how ranks with parts of the positions attend to the keys of others", [
    I32EnumAttrCase<"gather", 0>, I32EnumAttrCase<"ring", 1>]> {
  let cppNamespace = "::mlir::nn";
}

def NN_AttentionOp : NN_ComputeOp<"attention",
    [DeclareOpInterfaceMethods<DifferentiableOpInterface>,
     DeclareOpInterfaceMethods<SplitOpInterface, ["needsEvenParts", "getSplitRanks"]>],
    ["getKernelCall", "getPrecisionClass", "keepsSumType", "isContraction", "verifyCuda"]> {
  let summary = "Softmax attention, causal or not, with grouped heads";
  let description = [{
    The inputs are queries `q`, keys `k` and values `v`, or one tensor that contains all three. `order`
    names their dimensions, outermost first: `b` batch, `h` heads, `t` positions, `d` width, and `n` which
    of the three. `k` and `v` have groups instead of heads; head h attends to group
    `h / (heads / groups)`. `out` has the dimensions of the queries in the same order. For each query:
    `out = sum_s softmax_s(scale * q . k[s]) * v[s]`; `log_sum_exp` (batch, heads, queries) is that of
    the scaled products. It is computed in blocks: the matrix of queries by keys is never materialized.
    `log_sum_exp` is used in backward; it has no derivative.

    Query t is at the position `p = t + keys - queries`, so that the last query is at the last key, or with `at` and
    `over` at `p = t + at[r]`, where r is the index of this rank among those that share the axes `over`: its queries are
    a part of a sequence, and its keys a part that begins at 0, before or behind them, or all. What it attends to, and how:
    - `causal`: the keys `s <= p`.
    - `window` W: of these the last W, `p - W < s`. Blocks of keys outside the window are not computed.
    - `documents`: the last input contains an id for each batch and key. A query attends to the keys with the id at its
      own position. The values of ids have no meaning beyond being equal or not; blocks whose ids cannot
      be equal are not computed.
    - `softcap` c: the scaled products x become `c tanh(x / c)` (Gemma 2).
    - `bias`: an input behind keys and values, (heads or 1, queries, keys), whose elements are added to the scaled and
      capped products: `scale * q . k[s] + bias[h, t, s]`, as the mask of PyTorch's `scaled_dot_product_attention`, the
      mask of Gemma 2 and the positions of T5 (whose scale is 1) are added in transformers. One head is added to those of
      all. A key with -infinity is not seen; a query whose keys all have it has an output and gradients of 0, and a
      `log_sum_exp` of -infinity, as a query without keys has. Before it is added, the largest bias of the keys that the
      query attends to is subtracted from it, if it is not -infinity: the softmax is the same, `log_sum_exp` is that of the products
      with the difference, and a mask of large finite numbers does not absorb the products.

    The order avoids transpositions in memory: the result of a projection is "b t h d", or
    "b t n h d" if it computes queries, keys and values together.

    With `exchange` the positions of queries, keys, values and result may be split over ranks, evenly, and partitioning builds
    what ranks do together:
    - `gather`: each gathers the keys and values of all, and attends to them with its own queries, which are `at` their
      places. Backward gathers them again, and the gradients of keys and values are summed in `log_sum_exp`'s type and scattered.
    - `ring`: keys and values go from each rank to the next, and what a query has of one block of them, `out` and
      `log_sum_exp`, is merged with what it has of those before: `m = max(l, l')`, `a = exp(l - m)`, `a' = exp(l' - m)`,
      `out = (a out + a' out') / (a + a')`, `l = m + log(a + a')`. Backward sends them round again, and with them the sums
      of their gradients so far, in `log_sum_exp`'s type. Blocks that no query of a rank sees are not computed there, and those that no
      rank sees are not sent.

    With `zigzag` C the positions are those of C ranks in zigzag order: of 2 C chunks of consecutive positions, as long as
    each other, rank r has chunk r and behind it chunk 2 C - 1 - r. The mask is that of the positions, so that each rank
    computes as many scores. A ring then attends, for each block, to three pairs of chunks, of which a rank
    sees two; with `gather` keys and values are put in the order of their positions, and a rank's two chunks of queries
    attend to them one after the other.

    Constraints:
    - (C1) `order` has `b`, `h` and `t` once each, may have `n`, and ends with `d`.
    - (C2) there are three inputs, or with `n` in the order one, whose dimension `n` has size 3; with `bias` one more,
      and with `documents`.
    - (C3) inputs have as many dimensions as the order; `q` and `k` have the same batch and width, `k` and
      `v` one shape.
    - (C4) the groups divide the heads.
    - (C5) `out` has the sizes of the queries, `log_sum_exp` is (batch, heads, queries).
    - (C6) there is at least one key, and with `causal` at least as many keys as queries, unless `at` places these.
    - (C7) the element types of `q`, `k`, `v` and `out` are equal, and floats; `log_sum_exp` has that of their sums
      (f32 for 16 bits).
    - (C8) `window` is positive and with `causal` only; `softcap` is positive.
    - (C9) the ids of documents are i32, of shape (batch, keys), and there are at least as many keys as queries.
    - (C10) the bias is (1, queries, keys) or (heads, queries, keys), of the element type of `log_sum_exp`.
    - (C11) with `exchange` there are as many keys as queries, and neither `at` nor `over`; `ring` has no bias and no documents.
    - (C12) `at` and `over` stand together, with one number for each rank, at least one; with documents each query is at a key.
    - (C13) `zigzag` is at least 2 and has `exchange` and `causal`, but no bias; twice its number divides the positions.

    Example:
    ```mlir
    %out, %lse = nn.attention %q, %k, %v scale 0.125 causal
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
          -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
    %all, %sums = nn.attention "b t n h d" %qkv scale 0.125 causal
        : (tensor<8x16x3x12x64xf32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
    %packed, %logs = nn.attention "b t n h d" %qkv, %ids scale 0.125 causal window 4 softcap 50.0 documents
        : (tensor<8x16x3x12x64xf32>, tensor<8x16xi32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
    %near, %lnear = nn.attention %q, %k, %v, %bias scale 0.125 causal bias
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>, tensor<12x16x16xf32>)
          -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
    %long, %llong = nn.attention %q, %k, %v scale 0.125 causal exchange ring
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
          -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
    %even, %leven = nn.attention %q, %k, %v scale 0.125 causal exchange ring zigzag 4
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
          -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
    // The second of two blocks of a ring of 2: the first rank's queries come before its keys, the other's behind them.
    %block, %lblock = nn.attention %q, %k, %v scale 0.125 causal at [-16, 16] over ["context"]
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
          -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
    ```
  }];
  let arguments = (ins DefaultValuedStrAttr<StrAttr, "b h t d">:$order,
                       Variadic<NN_AttentionInput>:$inputs, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
                       UnitAttr:$bias, UnitAttr:$documents,
                       OptionalAttr<NN_KeyExchange>:$exchange, OptionalAttr<I64Attr>:$zigzag,
                       OptionalAttr<DenseI64ArrayAttr>:$at, OptionalAttr<StrArrayAttr>:$over);
  let results = (outs NN_FloatTensor:$out, NN_FloatTensor:$log_sum_exp);
  let assemblyFormat = [{
    ($order^)? $inputs `scale` $scale (`causal` $causal^)? (`window` $window^)?
    (`softcap` $softcap^)? (`bias` $bias^)? (`documents` $documents^)?
    (`exchange` $exchange^)? (`zigzag` $zigzag^)? (`at` $at^ `over` $over)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Sizes and element strides.
    ::mlir::nn::AttentionLayout getLayout();
    /// Queries, keys and values, or the one tensor that contains them: the inputs without the bias and the ids.
    ::mlir::OperandRange getTensors() { return getInputs().drop_back(getBias() + getDocuments()); }
  }];
  let hasVerifier = 1;
}

def NN_AttentionGradOp : NN_ComputeOp<"attention_grad",
    [AllTypesMatch<["out", "d_out"]>, DeclareOpInterfaceMethods<SplitOpInterface, ["needsEvenParts", "getSplitRanks"]>],
    ["getKernelCall", "verifyCuda"]> {
  let summary = "Cotangents of the operands of an attention";
  let description = [{
    Recomputes the probabilities `p = exp(scale * q . k - log_sum_exp)` by blocks. With
    `d_p = d_out . v` and `d_s = p * (d_p - sum(d_out * out))`: `d_q = scale * d_s . k`,
    `d_k = scale * d_s . q`, `d_v = p . d_out`, the last two summed over the heads of a group. If
    one input contains queries, keys and values, one result contains their gradients. With a `softcap` c the scores are
    `y = c tanh(scale * q . k / c)`, and `d_s` is multiplied by `1 - (y / c)^2`. A `bias` is added to the scores, less what
    `nn.attention` subtracts from it, and its own gradient is that of `nn.attention_bias_grad`.

    Constraints:
    - (C1) to (C13) of `nn.attention`.
    - (C14) there is a gradient of each input but the bias and the ids, of its type.

    Example:
    ```mlir
    %d_q, %d_k, %d_v = nn.attention_grad %q, %k, %v, %out, %lse, %d_out scale 0.125 causal
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>,
           tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>)
          -> (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
    ```
  }];
  let arguments = (ins DefaultValuedStrAttr<StrAttr, "b h t d">:$order,
                       Variadic<NN_AttentionInput>:$inputs, NN_FloatTensor:$out,
                       NN_FloatTensor:$log_sum_exp, NN_FloatTensor:$d_out, F64Attr:$scale,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$softcap, UnitAttr:$bias, UnitAttr:$documents,
                       OptionalAttr<NN_KeyExchange>:$exchange, OptionalAttr<I64Attr>:$zigzag,
                       OptionalAttr<DenseI64ArrayAttr>:$at, OptionalAttr<StrArrayAttr>:$over);
  let results = (outs Variadic<NN_FloatTensor>:$gradients);
  let assemblyFormat = [{
    ($order^)? operands `scale` $scale (`causal` $causal^)? (`window` $window^)?
    (`softcap` $softcap^)? (`bias` $bias^)? (`documents` $documents^)?
    (`exchange` $exchange^)? (`zigzag` $zigzag^)? (`at` $at^ `over` $over)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Sizes and element strides.
    ::mlir::nn::AttentionLayout getLayout();
    /// Queries, keys and values, or the one tensor that contains them: the inputs without the bias and the ids.
    ::mlir::OperandRange getTensors() { return getInputs().drop_back(getBias() + getDocuments()); }
  }];
  let hasVerifier = 1;
}

def NN_AttentionBiasGradOp : NN_ComputeOp<"attention_bias_grad",
    [DeclareOpInterfaceMethods<SplitOpInterface, ["needsEvenParts"]>], ["getKernelCall", "verifyCuda"]> {
  let summary = "Cotangent of the bias of an attention";
  let description = [{
    The sum over the batch, and over the heads where the bias is one for all, of `d_s = p * (d_p - sum(d_out * out))`, as
    `nn.attention_grad` has it, without the scale and without the derivative of a `softcap`, behind which the bias is added.
    Keys that a query does not see have 0. The probabilities are computed again; an attention whose bias needs no gradient
    has none of this.

    Constraints:
    - (C1) to (C13) of `nn.attention` with `bias`.
    - (C14) the gradient has the type of the bias.

    Example:
    ```mlir
    %d_bias = nn.attention_bias_grad %q, %k, %v, %bias, %out, %lse, %d_out scale 0.125 causal
        : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>, tensor<12x16x16xf32>,
           tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>) -> tensor<12x16x16xf32>
    ```
  }];
  let arguments = (ins DefaultValuedStrAttr<StrAttr, "b h t d">:$order,
                       Variadic<NN_AttentionInput>:$inputs, NN_FloatTensor:$out,
                       NN_FloatTensor:$log_sum_exp, NN_FloatTensor:$d_out, F64Attr:$scale,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$softcap, UnitAttr:$documents,
                       OptionalAttr<NN_KeyExchange>:$exchange,
                       OptionalAttr<DenseI64ArrayAttr>:$at, OptionalAttr<StrArrayAttr>:$over);
  let results = (outs NN_FloatTensor:$gradient);
  let assemblyFormat = [{
    ($order^)? operands `scale` $scale (`causal` $causal^)? (`window` $window^)?
    (`softcap` $softcap^)? (`documents` $documents^)?
    (`exchange` $exchange^)? (`at` $at^ `over` $over)? attr-dict `:`
    functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Sizes and element strides.
    ::mlir::nn::AttentionLayout getLayout();
    bool getBias() { return true; }
    /// An attention with a bias has its positions in their order.
    std::optional<uint64_t> getZigzag() { return std::nullopt; }
    /// Queries, keys and values, or the one tensor that contains them: the inputs without the bias and the ids.
    ::mlir::OperandRange getTensors() { return getInputs().drop_back(getBias() + getDocuments()); }
  }];
  let hasVerifier = 1;
}

def NN_RopeRamp : I32EnumAttr<"RopeRamp", "what the share of the unchanged rate grows with", [
    I32EnumAttrCase<"index", 0>, I32EnumAttrCase<"rate", 1>]> {
  let cppNamespace = "::mlir::nn";
}

def NN_RopeOp : NN_ComputeOp<"rope", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, AllTypesMatch<["x", "y"]>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass"], ["getLinearity"]> {
  let summary = "Rotate pairs of elements by angles that grow with the position";
  let description = [{
    The last dimension of `x` is a row, and `dim` are positions. The elements i and i + width/2 of a row
    are rotated as a point in the plane by the angle `t * rate(i)` at position t: `(a, b)` becomes
    `(a cos - b sin, b cos + a sin)`, times `magnitude` (1 by default). With `inverse` the rotation is reversed and the
    magnitude is the same, which is also the cotangent. The position of index s along `dim` is s or, of sample b, `positions[b, s]`.

    `rate(i)` is `r = theta^(-2 i / width)`. With a `factor` it is `s r + (1 - s) r / factor`, where the share s is 0 or, with a
    `ramp`, a line that is 0 at `from` and 1 at `to`, limited to [0, 1], of i (`index`) or of r
    (`rate`). `from` may be above `to`.

    Constraints:
    - (C1) `dim` is a dimension of `x` before the last, whose size is even.
    - (C2) `theta` is positive.
    - (C3) `factor` and `magnitude` are positive.
    - (C4) `ramp`, `from` and `to` are given together, and only with `factor`; `from` and `to` are two finite numbers.
    - (C5) `positions` has type i32 and the sizes of `x` in dimension 0, the samples, and in `dim`, which is another one.

    Example:
    ```mlir
    %y = nn.rope %x dim 2 theta 1.0e+04 : tensor<8x12x16x64xf32>
    %z = nn.rope %y dim 2 theta 1.0e+04 inverse : tensor<8x12x16x64xf32>
    %w = nn.rope %x dim 2 theta 1.0e+04 factor 4.0 ramp index from 20.0 to 12.0 magnitude 1.14 : tensor<8x12x16x64xf32>
    %v = nn.rope %x at %positions : tensor<8x16xi32> dim 2 theta 1.0e+04 : tensor<8x12x16x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, Optional<NN_IntTensor>:$positions, I64Attr:$dim,
                       F64Attr:$theta, UnitAttr:$inverse,
                       OptionalAttr<F64Attr>:$factor, OptionalAttr<NN_RopeRamp>:$ramp,
                       OptionalAttr<F64Attr>:$from, OptionalAttr<F64Attr>:$to,
                       OptionalAttr<F64Attr>:$magnitude);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = [{
    $x (`at` $positions^ `:` type($positions))? `dim` $dim `theta` $theta (`factor` $factor^)? (`ramp` $ramp^)? (`from` $from^)? (`to` $to^)?
    (`magnitude` $magnitude^)? (`inverse` $inverse^)? attr-dict `:` type($x)
  }];
  let hasVerifier = 1;
}

#endif // NN_ATTENTION_OPS_TD
