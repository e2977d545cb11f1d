//===- NNNormOps.td - softmax and normalization of rows ------------------===//

#ifndef NN_NORM_OPS_TD
#define NN_NORM_OPS_TD

include "dialect/nn/NNBase.td"

/// `result` has the shape of `operand` and the element type of sums of its elements.
class NN_SumOf<string operand, string result>
    : TypesMatchWith<result # " has the type of sums of " # operand, operand, result,
                     "::mlir::nn::getSumType($_self)">;

// The last dimension of `x` is a row; all others count rows.

def NN_SoftmaxOp : NN_ComputeOp<"softmax", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<SplitOpInterface>,
    AllTypesMatch<["x", "y"]>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass"]> {
  let summary = "Exponentials of each row, divided by their sum";
  let description = [{
    `exp(x - max) / sum(exp(x - max))` over the last dimension. Ranks with parts of a row exchange its maximum and its sum.

    Constraints:
    - (C1) `x` has a last dimension.

    Example:
    ```mlir
    %y = nn.softmax %x : tensor<8x10xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x);
  let results = (outs NN_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def NN_LayerNormOp : NN_ComputeOp<"layer_norm", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<SplitOpInterface>,
    AllTypesMatch<["x", "y"]>,
    AllTypesMatch<["scale", "bias"]>, AllTypesMatch<["mean", "rstd"]>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass"]> {
  let summary = "Rows of mean 0 and variance 1, scaled and shifted";
  let description = [{
    `y = (x - mean) * rstd * scale + bias` for each row, with `mean` and `rstd = 1 / sqrt(variance +
    eps)` of the row (population variance). Both are results so that backward needs no second
    reduction; they have no derivative. Sums are accumulated at least in f32.

    Constraints:
    - (C1) `x` has a last dimension.
    - (C2) `scale` and `bias` have the shape of a row.
    - (C3) `mean` and `rstd` have the shape of the rows.
    - (C4) `scale` has the element type of `x`; `mean` and `rstd` that of its sums: f32 for 16-bit floats, else the same.
    - (C5) `eps` is positive.

    Example:
    ```mlir
    %y, %mean, %rstd = nn.layer_norm %x, %scale, %bias eps 1.0e-05
        : tensor<8x16x32xf32>, tensor<32xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$bias,
                       F64Attr:$eps);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$mean, NN_FloatTensor:$rstd);
  let assemblyFormat = [{
    $x `,` $scale `,` $bias `eps` $eps attr-dict `:` type($x) `,` type($scale) `->` type($mean)
  }];
  let hasVerifier = 1;
}

def NN_LayerNormGradOp : NN_ComputeOp<"layer_norm_grad", [
    DeclareOpInterfaceMethods<SplitOpInterface>, DeclareOpInterfaceMethods<ResidualOpInterface>, AllTypesMatch<["x", "d_y", "d_x"]>, AllTypesMatch<["mean", "rstd"]>,
    NN_SumOf<"scale", "d_scale">, NN_SumOf<"scale", "d_bias">],
    ["getKernelCall", "getInPlacePairs"]> {
  let summary = "Cotangents of the operands of a layer norm";
  let description = [{
    With `n = (x - mean) * rstd` and `g = d_y * scale`: `d_x = rstd * (g - mean(g) - n * mean(g * n))` for each
    row; `d_scale = sum(d_y * n)` and `d_bias = sum(d_y)` over all rows, in their order. If rows are
    sharded, the last two are partial sums.

    `residual`, the cotangent that reaches `x` past the norm, is added to `d_x` before it is rounded. `sums` are the sums of `d_x` over all rows,
    before it is rounded: the gradient of a bias that is added to every row of `x`. `fsdp-join-kernels` creates both.

    Constraints:
    - (C1) `x` has a last dimension.
    - (C2) `scale` has the shape of a row.
    - (C3) `mean` and `rstd` have the shape of the rows.
    - (C4) `scale` has the element type of `x`; statistics, `d_scale` and `d_bias` that of its sums (f32 for 16 bits).
    - (C5) `residual` has the type of `x`.
    - (C6) `sums` has the type of `d_scale`, and there is a `residual`.

    Example:
    ```mlir
    %d_x, %d_scale, %d_bias = nn.layer_norm_grad %x, %scale, %mean, %rstd, %d_y
        : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32>
    %all:4 = nn.layer_norm_grad %x, %scale, %mean, %rstd, %d_y plus %d_x
        : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32> sums tensor<32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$mean,
                       NN_FloatTensor:$rstd, NN_FloatTensor:$d_y, Optional<NN_FloatTensor>:$residual);
  let results = (outs NN_FloatTensor:$d_x, NN_FloatTensor:$d_scale, NN_FloatTensor:$d_bias,
                      Optional<NN_FloatTensor>:$sums);
  let assemblyFormat = [{
    $x `,` $scale `,` $mean `,` $rstd `,` $d_y (`plus` $residual^)? attr-dict `:` type($x) `,` type($scale) `,`
    type($mean) (`plus` type($residual)^)? (`sums` type($sums)^)?
  }];
  let hasVerifier = 1;
}

def NN_RmsNormOp : NN_ComputeOp<"rms_norm", [
    DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<SplitOpInterface>,
    AllTypesMatch<["x", "y"]>],
    ["getKernelCall", "getInPlacePairs", "getPrecisionClass"]> {
  let summary = "Rows of mean square 1, scaled";
  let description = [{
    `y = x * rstd * scale` for each row, with `rstd = 1 / sqrt(mean(x * x) + eps)` of the row. It is a
    result so that backward needs no second reduction; it has no derivative. Sums are
    accumulated at least in f32.

    Constraints:
    - (C1) `x` has a last dimension.
    - (C2) `scale` has the shape of a row.
    - (C3) `rstd` has the shape of the rows.
    - (C4) `scale` has the element type of `x`, `rstd` that of its sums: f32 for 16-bit floats, else the same.
    - (C5) `eps` is positive.

    Example:
    ```mlir
    %y, %rstd = nn.rms_norm %x, %scale eps 1.0e-06
        : tensor<8x16x32xf32>, tensor<32xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$y, NN_FloatTensor:$rstd);
  let assemblyFormat = [{
    $x `,` $scale `eps` $eps attr-dict `:` type($x) `,` type($scale) `->` type($rstd)
  }];
  let hasVerifier = 1;
}

def NN_RmsNormGradOp : NN_ComputeOp<"rms_norm_grad", [
    DeclareOpInterfaceMethods<SplitOpInterface>, DeclareOpInterfaceMethods<ResidualOpInterface>, AllTypesMatch<["x", "d_y", "d_x"]>, NN_SumOf<"scale", "d_scale">],
    ["getKernelCall", "getInPlacePairs"]> {
  let summary = "Cotangents of the operands of an RMS norm";
  let description = [{
    With `n = x * rstd` and `g = d_y * scale`: `d_x = rstd * (g - n * mean(g * n))` for each row;
    `d_scale = sum(d_y * n)` over all rows, in their order, a partial sum where rows are split. `residual` and `sums` are as in
    `nn.layer_norm_grad`.

    Constraints:
    - (C1) `x` has a last dimension.
    - (C2) `scale` has the shape of a row.
    - (C3) `rstd` has the shape of the rows.
    - (C4) `scale` has the element type of `x`; `rstd` and `d_scale` that of its sums: f32 for 16-bit floats, else the same.
    - (C5) `residual` has the type of `x`.
    - (C6) `sums` has the type of `d_scale`, and there is a `residual`.

    Example:
    ```mlir
    %d_x, %d_scale = nn.rms_norm_grad %x, %scale, %rstd, %d_y
        : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32>
    %both, %d = nn.rms_norm_grad %x, %scale, %rstd, %d_y plus %d_x
        : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$scale, NN_FloatTensor:$rstd,
                       NN_FloatTensor:$d_y, Optional<NN_FloatTensor>:$residual);
  let results = (outs NN_FloatTensor:$d_x, NN_FloatTensor:$d_scale, Optional<NN_FloatTensor>:$sums);
  let assemblyFormat = [{
    $x `,` $scale `,` $rstd `,` $d_y (`plus` $residual^)? attr-dict `:` type($x) `,` type($scale) `,` type($rstd)
    (`plus` type($residual)^)? (`sums` type($sums)^)?
  }];
  let hasVerifier = 1;
}

#endif // NN_NORM_OPS_TD
