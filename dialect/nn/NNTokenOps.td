//===- NNTokenOps.td - what follows from the tokens of a text ------------===//

#ifndef NN_TOKEN_OPS_TD
#define NN_TOKEN_OPS_TD

include "dialect/nn/NNBase.td"

def NN_PositionsSinceOp : NN_ComputeOp<"positions_since", [], ["getKernelCall"]> {
  let summary = "How many positions ago a sequence of tokens ended";
  let description = [{
    The last dimension of `tokens` runs over positions. A sequence of n tokens ends at position s where the tokens s - n + 1 to s are
    those of the sequence. The result at position t is t - s for the last such s up to t, and t + 1 where there is none.

    With `documents` the sequence ends a document, and the result is the position in the document: t - s - 1 for the last
    such s before t, and t where there is none. In steps that generate, a text is one document.

    Constraints:
    - (C1) `tokens` have a dimension.
    - (C2) the result is i32 and has the shape of `tokens`.
    - (C3) the sequence has 1 to 16 tokens, none of them negative.

    Example:
    ```mlir
    %p = nn.positions_since [7] documents in %tokens : tensor<8x16xi32> -> tensor<8x16xi32>
    %s = nn.positions_since [5, 3] in %tokens : tensor<8x16xi32> -> tensor<8x16xi32>
    ```
  }];
  let arguments = (ins NN_IntTensor:$tokens, DenseI64ArrayAttr:$sequence, UnitAttr:$documents);
  let results = (outs NN_IntTensor:$result);
  let assemblyFormat =
      "$sequence (`documents` $documents^)? `in` $tokens attr-dict `:` type($tokens) `->` type($result)";
  let extraClassDeclaration = [{
    /// The capacity of the kernels.
    static constexpr int64_t kMaxLength = 16;
  }];
  let hasVerifier = 1;
}

#endif // NN_TOKEN_OPS_TD
