//===- NNFusionOps.td - several ops as one kernel ------------------------===//

#ifndef NN_FUSION_OPS_TD
#define NN_FUSION_OPS_TD

include "dialect/nn/NNBase.td"

def NN_FusedOp : NN_Op<"fused", [Pure, IsolatedFromAbove, SingleBlock,
                                 DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "A chain of ops that runs as one kernel";
  let description = [{
    The block computes the results from its arguments (one per operand); only the yielded values
    are stored to memory. `fsdp-fuse` builds it from
    elementwise chains, the broadcasts that they use, the matrix product whose rows they continue with and the
    reduction at their end. A product is computed in the buffer of the first result of its type. A product and the sum
    over the rows of one of its operands, which read nothing of each other, are one kernel too; the product is the first result.

    Constraints:
    - (C1) block arguments have the types of the operands, yielded values those of the results.
    - (C2) the block ends with `nn.yield`; every other op in it is free of side effects.

    Example:
    ```mlir
    %r = nn.fused %x, %bias : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<4xf32>):
      %c = nn.repeat "d -> b d" %b : tensor<4xf32> -> tensor<8x4xf32>
      %s = arith.addf %a, %c : tensor<8x4xf32>
      nn.yield %s : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<NN_AnyTensor>:$inputs);
  let results = (outs Variadic<NN_AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "$inputs attr-dict `:` functional-type(operands, results) custom<Body>($body)";
  let hasVerifier = 1;
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, HasParent<"FusedOp">]> {
  let summary = "End the block of nn.fused with its results";
  let description = [{
    Names the values that the enclosing `nn.fused` stores to memory as its results.

    Example:
    ```mlir
    %r = nn.fused %x : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %n = arith.negf %a : tensor<4xf32>
      nn.yield %n : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<NN_AnyTensor>:$results);
  let assemblyFormat = "attr-dict ($results^ `:` type($results))?";
}

#endif // NN_FUSION_OPS_TD
