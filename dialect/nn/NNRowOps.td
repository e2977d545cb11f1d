//===- NNRowOps.td - classification of rows ------------------------------===//

#ifndef NN_ROW_OPS_TD
#define NN_ROW_OPS_TD

include "dialect/nn/NNBase.td"

def NN_CrossEntropyOp : NN_ComputeOp<"cross_entropy",
    [DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<SplitOpInterface>,
     DeclareOpInterfaceMethods<RowLossOpInterface>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass", "getIndexBound", "readsLogits"]> {
  let summary = "Softmax cross-entropy of rows of logits with integer labels";
  let description = [{
    For each row: `log_sum_exp = log(sum(exp(logits)))` and
    `loss = log_sum_exp - logits[label]`, computed stably with the row's maximum; the
    one-hot and the softmax are never materialized. The last dimension of `logits` holds the
    classes, all others are rows.

    With `d_loss`, the cotangent of `loss`, there is also that of the logits, `nn.cross_entropy_grad` of the same operands:
    the kernel reads the logits once for both. `fsdp-join-kernels` creates it.

    Constraints:
    - (C1) `labels`, `loss`, `log_sum_exp` and `d_loss` have the shape of the rows.
    - (C2) `loss`, `log_sum_exp` and `d_loss` have the element type of sums of logits: f32 for 16-bit floats, else the same.
    - (C3) the logits have a last dimension.
    - (C4) there is a `gradient` if there is a `d_loss`, and only then; it has the type of the logits.

    Example:
    ```mlir
    %loss, %lse = nn.cross_entropy %logits, %labels
        : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
    %all:3 = nn.cross_entropy %logits, %labels upstream %loss
        : tensor<8x10xf32>, tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$labels, Optional<NN_FloatTensor>:$d_loss);
  let results = (outs NN_FloatTensor:$loss, NN_FloatTensor:$log_sum_exp, Optional<NN_FloatTensor>:$gradient);
  let assemblyFormat = [{
    $logits `,` $labels (`upstream` $d_loss^)? attr-dict `:` type($logits) `,` type($labels)
    (`upstream` type($d_loss)^)? `->` type($loss) `,` type($log_sum_exp) (`,` type($gradient)^)?
  }];
  let hasVerifier = 1;
}

def NN_PartialCrossEntropyOp : NN_ComputeOp<"partial_cross_entropy", [DeclareOpInterfaceMethods<RowLossOpInterface>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass", "readsLogits"]> {
  let summary = "The contribution of a part of the classes to a cross-entropy";
  let description = [{
    The logits are one rank's part of the classes; of the last dimension the first `count` are classes, those after them
    padding. For each row: `max`, the largest logit, -inf where there is none; `sum`, that of `exp(logits - max)`, 0 where
    `max` is -inf; and `picked`, the logit with the number in `labels`, 0 for a label of -1, the label of a class of
    another rank (`fsdp.shard_indices`).

    With M the maximum of all `max`, the log-sum-exp over all classes is `log(S) + M`, where S is the sum over ranks of
    `sum * exp(max - M)`, and the loss is this without the sum of all `picked`. `fsdp-partition` expands a
    split `nn.cross_entropy` this way: all-reduces of a maximum and two sums per row, and no logits are sent.

    With `d_loss`, the cotangent of the loss, no other rank has classes, so `log_sum_exp` is `log(sum) + max`; there is then also
    the cotangent of the logits, `nn.cross_entropy_grad` of `log_sum_exp`: the kernel reads the logits once for both.
    `fsdp-join-kernels` creates it.

    Constraints:
    - (C1) `labels`, `d_loss` and the results but `gradient` have the shape of the rows.
    - (C2) `d_loss` and the results but `gradient` have the element type of sums of logits: f32 for 16-bit floats, else the same.
    - (C3) the logits have a last dimension.
    - (C4) there is a `gradient` if there is a `d_loss`, and only then; it has the type of the logits.

    Example:
    ```mlir
    %count = arith.constant dense<5> : tensor<i64>
    %max, %sum, %picked = nn.partial_cross_entropy %logits, %labels of %count
        : tensor<8x5xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$labels, NN_ScalarI64:$count, Optional<NN_FloatTensor>:$d_loss);
  let results = (outs NN_FloatTensor:$max, NN_FloatTensor:$sum, NN_FloatTensor:$picked, Optional<NN_FloatTensor>:$gradient);
  let assemblyFormat = [{
    $logits `,` $labels `of` $count (`upstream` $d_loss^)? attr-dict `:` type($logits) `,` type($labels)
    (`upstream` type($d_loss)^)? `->` type($max) `,` type($sum) `,` type($picked) (`,` type($gradient)^)?
  }];
  let hasVerifier = 1;
}

def NN_CrossEntropyGradOp : NN_ComputeOp<"cross_entropy_grad",
    [AllTypesMatch<["logits", "result"]>, DeclareOpInterfaceMethods<SplitOpInterface>],
    ["getKernelCall", "getInPlacePairs", "readsLogits"]> {
  let summary = "Cotangent of the logits of a cross-entropy";
  let description = [{
    `(exp(logits - log_sum_exp) - one_hot(labels)) * d_loss`, row by row.

    With `count` the logits are one rank's part of the classes, of which the first `count` are classes: the cotangents of
    those after them are 0. For a label of -1, a class of another rank, `one_hot` is 0.

    Constraints:
    - (C1) `labels`, `log_sum_exp` and `d_loss` have the shape of the rows.
    - (C2) `log_sum_exp` and `d_loss` have the element type of sums of logits: f32 for 16-bit floats, else the same.

    Example:
    ```mlir
    %d = nn.cross_entropy_grad %logits, %labels, %lse, %d_loss
        : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$labels,
                       NN_FloatTensor:$log_sum_exp, NN_FloatTensor:$d_loss,
                       Optional<NN_ScalarI64>:$count);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels `,` $log_sum_exp `,` $d_loss (`of` $count^)? attr-dict `:`
    type($logits) `,` type($labels) `,` type($log_sum_exp) `,` type($d_loss)
  }];
  let hasVerifier = 1;
}

def NN_ArgmaxOp : NN_ComputeOp<"argmax", [DeclareOpInterfaceMethods<SplitOpInterface>], ["getPrecisionClass"]> {
  let summary = "Index of the largest element of each row";
  let description = [{
    The position along the last dimension of the first largest element.

    Constraints:
    - (C1) the result has the shape of the rows.
    - (C2) the last dimension is not empty.

    Example:
    ```mlir
    %p = nn.argmax %logits : tensor<8x10xf32> -> tensor<8xi32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_IntTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

#endif // NN_ROW_OPS_TD
