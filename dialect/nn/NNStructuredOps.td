//===- NNStructuredOps.td - ops in the notation of einops ----------------===//

#ifndef NN_STRUCTURED_OPS_TD
#define NN_STRUCTURED_OPS_TD

include "dialect/nn/NNBase.td"

def NN_EinsumOp : NN_ComputeOp<"einsum", [DeclareOpInterfaceMethods<DifferentiableOpInterface>],
    ["getPrecisionClass", "isContraction"], ["getLinearity"]> {
  let summary = "Contract two tensors, given by an einsum string";
  let description = [{
    Multiplies `lhs` and `rhs` over the iteration space that the notation names
    (one letter per dimension) and sums over the names that the result does not have.
    Products are accumulated at least in f32 and rounded once to the result's
    element type.

    Constraints:
    - (C1) the notation has two operands and is in canonical spelling (no spaces).
    - (C2) no name appears twice in one tensor.
    - (C3) every name of an operand appears in the other operand or in the result
      (otherwise sum over it with `nn.reduce` first), every name of the result in an operand.
    - (C4) each name has one size.

    Example:
    ```mlir
    %y = nn.einsum "bsd,df->bsf" %x, %w
        : (tensor<8x16x32xf32>, tensor<32x64xf32>) -> tensor<8x16x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$notation, NN_FloatTensor:$lhs, NN_FloatTensor:$rhs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$notation $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The parsed notation.
    ::mlir::nn::Notation getPattern();
    /// The size of every name of the notation.
    ::llvm::StringMap<int64_t> getNameSizes();
  }];
  let hasVerifier = 1;
}

def NN_RearrangeOp : NN_ComputeOp<"rearrange", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    AllElementTypesMatch<["input", "result"]>],
    ["getPrecisionClass"], ["getLinearity", "setLocalSizes"]> {
  let summary = "Reshape and transpose in one op";
  let description = [{
    Splits dimensions into factors, reorders the factors and merges them again, as given by
    the einops pattern; `1` is a dimension of size one. Sizes that do not follow from the shapes
    are in `sizes`.

    Constraints:
    - (C1) canonical spelling (single spaces, no group of fewer than two names).
    - (C2) both sides have the same names, each once.
    - (C3) sizes multiply to the dimensions of both sides; `sizes` is present only
      where the shapes do not determine them.

    Example:
    ```mlir
    %q = nn.rearrange "b s (h d) -> b h s d" %p
        : tensor<8x16x96xf32> -> tensor<8x12x16x8xf32>
    ```
  }];
  let arguments = (ins StrAttr:$notation, NN_AnyTensor:$input,
                       OptionalAttr<DictionaryAttr>:$sizes);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat =
      "$notation $input (`sizes` $sizes^)? attr-dict `:` type($input) `->` type($result)";
  let extraClassDeclaration = [{
    /// The parsed notation.
    ::mlir::nn::Notation getPattern();
    /// The size of every name of the notation.
    ::llvm::StringMap<int64_t> getNameSizes();
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_RepeatOp : NN_ComputeOp<"repeat", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    AllElementTypesMatch<["input", "result"]>],
    ["getPrecisionClass", "isCheap"], ["getLinearity"]> {
  let summary = "Broadcast along new dimensions";
  let description = [{
    Every element of the input is repeated at each position of the names that only the
    result has. The size of a new name is that of the result type.

    Constraints:
    - (C1) canonical spelling; every dimension has one name (no groups, no `1`).
    - (C2) every name of the operand appears in the result, in any order; no name twice
      in one tensor.
    - (C3) each name has one size.

    Example:
    ```mlir
    %b = nn.repeat "d -> b s d" %bias : tensor<32xf32> -> tensor<8x16x32xf32>
    ```
  }];
  let arguments = (ins StrAttr:$notation, NN_AnyTensor:$input);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$notation $input attr-dict `:` type($input) `->` type($result)";
  let extraClassDeclaration = [{
    /// The parsed notation.
    ::mlir::nn::Notation getPattern();
    /// The size of every name of the notation.
    ::llvm::StringMap<int64_t> getNameSizes();
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_ReduceOp : NN_ComputeOp<"reduce", [DeclareOpInterfaceMethods<DifferentiableOpInterface>],
    ["getPrecisionClass"], ["getLinearity"]> {
  let summary = "Sum, average or maximize over named dimensions";
  let description = [{
    Combines all elements along the names that the result does not have. The result may have a
    wider float type than the input (`f32` to `f64`): elements are then widened before
    they are combined, as losses, metrics and norms require. Sums of f32 into f32 are
    accumulated in f32, in the order of the index. The maximum of no elements is -inf,
    the mean of no elements is NaN. The cotangent of a maximum is divided equally among the elements that attain it.

    Constraints:
    - (C1) canonical spelling; every dimension has one name (no groups, no `1`).
    - (C2) every name of the result appears in the operand; no name twice in one tensor.
    - (C3) each name has one size.
    - (C4) the element types are equal, or both float and that of the result is wider; `mean`
      needs floats; i1 is not supported.

    Example:
    ```mlir
    %m = nn.reduce sum "b s d -> b s" %x : tensor<8x16x32xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins NN_Reduction:$kind, StrAttr:$notation, NN_AnyTensor:$input);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$kind $notation $input attr-dict `:` type($input) `->` type($result)";
  let extraClassDeclaration = [{
    /// The parsed notation.
    ::mlir::nn::Notation getPattern();
    /// The size of every name of the notation.
    ::llvm::StringMap<int64_t> getNameSizes();
  }];
  let hasVerifier = 1;
}

def NN_ScanSumOp : NN_ComputeOp<"scan_sum", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<SplitOpInterface>,
    AllTypesMatch<["input", "result"]>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass"], ["getLinearity"]> {
  let summary = "Cumulative sum along a dimension";
  let description = [{
    Each element of the result is the sum of the elements of the input from the first one to that at its own
    position along `along`; with `exclusive` the element itself is left out, so that the first is 0. With
    `reverse` sums begin at the last element. They are computed in f32 (f64 for f64), in that
    order, and each is rounded once to the element type. Ranks with parts of that
    dimension add the sums of the ranks before them (after them with `reverse`). The cotangent is the cumulative sum of the result's cotangent in the other direction.

    Constraints:
    - (C1) the notation has a name for each dimension, with single spaces between them.
    - (C2) no name appears twice.
    - (C3) `along` is one of the names.

    Example:
    ```mlir
    %y = nn.scan_sum "b s d" along "s" %x : tensor<8x16x32xf32>
    %z = nn.scan_sum "b s d" along "s" %x exclusive reverse : tensor<8x16x32xf32>
    ```
  }];
  let arguments = (ins StrAttr:$notation, StrAttr:$along, NN_FloatTensor:$input,
                       UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $notation `along` $along $input (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:`
    type($input)
  }];
  let extraClassDeclaration = [{
    /// The index of the dimension `along`.
    int64_t getDim();
  }];
  let hasVerifier = 1;
}

#endif // NN_STRUCTURED_OPS_TD
