//===- NNShapeOps.td - cut, extend and join along a dimension ------------===//

#ifndef NN_SHAPE_OPS_TD
#define NN_SHAPE_OPS_TD

include "dialect/nn/NNBase.td"

class NN_ShapeOp<string mnemonic, list<Trait> traits = []>
    : NN_ComputeOp<mnemonic, !listconcat(
        [DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits),
        ["getKernelCall", "getPrecisionClass"], ["getLinearity"]>;

def NN_SliceOp : NN_ShapeOp<"slice", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "Extract a range of one dimension";
  let description = [{
    The elements whose index along `dim` is at least `start`, as many as in the result there.
    That dimension is not sharded.

    Constraints:
    - (C1) `dim` is a dimension of the input, and the result has the input's rank.
    - (C2) all other dimensions have the sizes of the input.
    - (C3) `start` is not negative and the range ends inside the input.

    Example:
    ```mlir
    %y = nn.slice %x dim 1 start 4 : tensor<8x16xf32> -> tensor<8x5xf32>
    ```
  }];
  let arguments = (ins NN_AnyTensor:$input, I64Attr:$dim, I64Attr:$start);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat =
      "$input `dim` $dim `start` $start attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def NN_PadOp : NN_ShapeOp<"pad", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "Extend one dimension with zeros";
  let description = [{
    The input with `low` zeros before it along `dim`, and zeros after it up to the size of the
    result. That dimension is not sharded.

    Constraints:
    - (C1) `dim` is a dimension of the input, and the result has the input's rank.
    - (C2) all other dimensions have the sizes of the input.
    - (C3) `low` is not negative and the input ends inside the result.

    Example:
    ```mlir
    %y = nn.pad %x dim 1 low 4 : tensor<8x5xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins NN_AnyTensor:$input, I64Attr:$dim, I64Attr:$low);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat =
      "$input `dim` $dim `low` $low attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def NN_ConcatOp : NN_ShapeOp<"concat"> {
  let summary = "Concatenate tensors along one dimension";
  let description = [{
    The inputs one after the other along `dim`. That dimension is not sharded.

    Constraints:
    - (C1) there is at least one input, and `dim` is a dimension of the result.
    - (C2) inputs and result have one element type, one rank, and equal sizes in all other
      dimensions.
    - (C3) the sizes of the inputs along `dim` add up to the result's.

    Example:
    ```mlir
    %y = nn.concat %a, %b dim 1 : (tensor<8x5xf32>, tensor<8x3xf32>) -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_AnyTensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // NN_SHAPE_OPS_TD
