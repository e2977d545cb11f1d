//===- NNEmbeddingOps.td - rows of a table -------------------------------===//

#ifndef NN_EMBEDDING_OPS_TD
#define NN_EMBEDDING_OPS_TD

include "dialect/nn/NNBase.td"

def NN_EmbeddingOp : NN_ComputeOp<"embedding",
    [DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<SplitOpInterface>],
    ["getKernelCall", "getPrecisionClass"]> {
  let summary = "Look up rows of a table";
  let description = [{
    Row `ids[...]` of `table` at every position of `ids`. An id outside of the table gives NaN in the
    interpreter and ends a generated program with an error that names the sample and the id.

    With `partial` the table is one rank's part of the rows, and an id of -1, a row of another rank
    (`fsdp.shard_indices`), gives zeros: the result is a partial sum over the ranks.

    Constraints:
    - (C1) `table` has rank two: rows and width.
    - (C2) the result has the shape of `ids`, followed by the width.
    - (C3) table and result have one element type.

    Example:
    ```mlir
    %x = nn.embedding %table, %ids
        : tensor<256x64xf32>, tensor<8x16xi32> -> tensor<8x16x64xf32>
    %part = nn.embedding partial %rows, %own_ids
        : tensor<128x64xf32>, tensor<8x16xi32> -> tensor<8x16x64xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$table, NN_IntTensor:$ids, UnitAttr:$partial);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat =
      "(`partial` $partial^)? $table `,` $ids attr-dict `:` type($table) `,` type($ids) `->` type($result)";
  let hasVerifier = 1;
}

def NN_EmbeddingGradOp : NN_ComputeOp<"embedding_grad",
    [DeclareOpInterfaceMethods<SplitOpInterface>], ["getKernelCall"]> {
  let summary = "Cotangent of the table of an embedding";
  let description = [{
    Row v of the result is the sum of the rows of `d_out` whose id is v, added in the order of their
    index, so that it is the same for any number of threads. If the ids are sharded, it is a
    partial sum.

    With `partial` the result is one rank's part of the rows, and nothing is added for an id of -1.

    Constraints:
    - (C1) the result has rank two: rows and width.
    - (C2) `d_out` has the shape of `ids`, followed by the width.
    - (C3) the result has the element type of sums of `d_out`: f32 for 16-bit floats, else the same.

    Example:
    ```mlir
    %d = nn.embedding_grad %ids, %d_out
        : tensor<8x16xi32>, tensor<8x16x64xf32> -> tensor<256x64xf32>
    ```
  }];
  let arguments = (ins NN_IntTensor:$ids, NN_FloatTensor:$d_out, UnitAttr:$partial);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat =
      "(`partial` $partial^)? $ids `,` $d_out attr-dict `:` type($ids) `,` type($d_out) `->` type($result)";
  let hasVerifier = 1;
}

#endif // NN_EMBEDDING_OPS_TD
