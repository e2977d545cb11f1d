//===- NNOps.td - tensor compute in einops notation -----------------------===//

#ifndef NN_OPS_TD
#define NN_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/nn/NNInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::mlir::nn";
  let summary = "Tensor compute in einops notation";
  let description = [{
    The `nn` dialect holds what a model computes, on ranked tensors and without side
    effects. Every structured op names its dimensions in the notation of einsum and
    einops; autodiff, sharding propagation, partitioning, cost and codegen all read
    that one notation through three interfaces (`ShardingRule`, `Differentiable`,
    `Cost`). Elementwise arithmetic is upstream `arith` and `math` on tensors, which
    implement the same interfaces through external models.

    The ops mean the same in the global phase (whole tensors), in the local phase
    (the part one rank holds) and inside the launches of the scheduled phase.

    Order of this file: structured ops, row ops, fusion.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let hasConstantMaterializer = 1;
}

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits>;

class NN_ComputeOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface>], traits)>;

def NN_FloatTensor : StaticShapeTensorOf<[F32, F64, BF16, F16]>;
def NN_IntTensor : StaticShapeTensorOf<[I32, I64]>;
def NN_AnyTensor : StaticShapeTensorOf<[F32, F64, BF16, F16, I1, I32, I64]>;

def NN_Reduction : I32EnumAttr<"Reduction", "how elements are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>]> {
  let cppNamespace = "::mlir::nn";
}

//===----------------------------------------------------------------------===//
// Structured ops
//===----------------------------------------------------------------------===//

def NN_EinsumOp : NN_ComputeOp<"einsum", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Contract two tensors as an einsum string says";
  let description = [{
    Multiplies `lhs` and `rhs` over the iteration space that the notation names
    (one letter per dimension) and sums over the names that the result lacks.
    Products are accumulated at least in f32 and rounded once to the result's
    element type.

    Constraints:
    - (C1) the notation has two operands and is in canonical spelling (no spaces).
    - (C2) no name stands twice in one tensor.
    - (C3) every name of an operand stands in the other operand or in the result
      (sum it away with `nn.reduce` first), every name of the result in an operand.
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
    AllElementTypesMatch<["input", "result"]>]> {
  let summary = "Reshape and transpose in one op";
  let description = [{
    Splits dimensions into factors, reorders the factors and merges them again, as the
    einops pattern says; `1` names a dimension of size one. Sizes that neither shape tells
    stand in `sizes`.

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
    AllElementTypesMatch<["input", "result"]>]> {
  let summary = "Broadcast along new dimensions";
  let description = [{
    Every element of the input stands at each position of the names that only the
    result has. The size of a new name is read off the result type.

    Constraints:
    - (C1) canonical spelling; every dimension has one name (no groups, no `1`).
    - (C2) every name of the operand stands in the result, in any order; no name twice
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

def NN_ReduceOp : NN_ComputeOp<"reduce", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Sum, average or maximize over named dimensions";
  let description = [{
    Combines all elements along the names that the result lacks. The result may have a
    wider float type than the input (`f32` to `f64`): elements are then widened before
    they are combined, as losses, metrics and norms require. Sums of f32 into f32 are
    accumulated in f32, in the order of the index. The maximum of nothing is -inf;
    the mean of nothing is NaN. The cotangent of a maximum goes in equal parts to the elements that attain it.

    Constraints:
    - (C1) canonical spelling; every dimension has one name (no groups, no `1`).
    - (C2) every name of the result stands in the operand; no name twice in one tensor.
    - (C3) each name has one size.
    - (C4) the element types are equal, or both float and the result's is the wider; `mean`
      takes floats, nothing takes i1.

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

//===----------------------------------------------------------------------===//
// Row ops
//===----------------------------------------------------------------------===//

def NN_CrossEntropyOp : NN_ComputeOp<"cross_entropy",
    [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Softmax cross-entropy of rows of logits with integer labels";
  let description = [{
    For each row: `log_sum_exp = log(sum(exp(logits)))` and
    `loss = log_sum_exp - logits[label]`, computed stably with the row's maximum; the
    one-hot and the softmax never exist. The last dimension of `logits` holds the
    classes, all others are rows.

    Constraints:
    - (C1) `labels`, `loss` and `log_sum_exp` have the shape of the rows.
    - (C2) element types: loss and log_sum_exp have that of the logits.
    - (C3) the logits have a last dimension.

    Example:
    ```mlir
    %loss, %lse = nn.cross_entropy %logits, %labels
        : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$labels);
  let results = (outs NN_FloatTensor:$loss, NN_FloatTensor:$log_sum_exp);
  let assemblyFormat = [{
    $logits `,` $labels attr-dict `:` type($logits) `,` type($labels) `->`
    type($loss) `,` type($log_sum_exp)
  }];
  let hasVerifier = 1;
}

def NN_CrossEntropyGradOp : NN_ComputeOp<"cross_entropy_grad",
    [AllTypesMatch<["logits", "result"]>]> {
  let summary = "Cotangent of the logits of a cross-entropy";
  let description = [{
    `(exp(logits - log_sum_exp) - one_hot(labels)) * d_loss`, row by row.

    Constraints:
    - (C1) `labels`, `log_sum_exp` and `d_loss` have the shape of the rows.
    - (C2) element types: log_sum_exp and d_loss have that of the logits.

    Example:
    ```mlir
    %d = nn.cross_entropy_grad %logits, %labels, %lse, %d_loss
        : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$labels,
                       NN_FloatTensor:$log_sum_exp, NN_FloatTensor:$d_loss);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels `,` $log_sum_exp `,` $d_loss attr-dict `:`
    type($logits) `,` type($labels) `,` type($log_sum_exp) `,` type($d_loss)
  }];
  let hasVerifier = 1;
}

def NN_ArgmaxOp : NN_ComputeOp<"argmax"> {
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

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

def NN_FusedOp : NN_Op<"fused", [Pure, IsolatedFromAbove, SingleBlock,
                                 DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "A chain of ops that runs as one kernel";
  let description = [{
    The block computes the results from its arguments (one per operand); nothing inside is
    ever stored to memory but what the block yields. `fsdp-fuse` builds it from
    elementwise chains, the broadcasts that feed them and the reduction that ends them.

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
      "$inputs attr-dict `:` functional-type(operands, results) $body";
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

#endif // NN_OPS_TD
