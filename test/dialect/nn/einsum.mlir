// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// A contraction, a batched one, an outer product, a scalar operand and a full contraction.
// CHECK-LABEL: func.func @einsum
func.func @einsum(%x: tensor<8x16x32xf32>, %w: tensor<32x64xf32>, %q: tensor<2x3x5xbf16>,
                  %k: tensor<2x7x5xbf16>, %a: tensor<4xf64>, %s: tensor<f64>) {
  // CHECK: nn.einsum "bsd,df->bsf" %{{.*}}, %{{.*}} : (tensor<8x16x32xf32>, tensor<32x64xf32>) -> tensor<8x16x64xf32>
  %0 = nn.einsum "bsd,df->bsf" %x, %w : (tensor<8x16x32xf32>, tensor<32x64xf32>) -> tensor<8x16x64xf32>
  // CHECK: nn.einsum "bqd,bkd->bqk" %{{.*}}, %{{.*}} : (tensor<2x3x5xbf16>, tensor<2x7x5xbf16>) -> tensor<2x3x7xf32>
  %1 = nn.einsum "bqd,bkd->bqk" %q, %k : (tensor<2x3x5xbf16>, tensor<2x7x5xbf16>) -> tensor<2x3x7xf32>
  // CHECK: nn.einsum "a,b->ab" %{{.*}}, %{{.*}} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4x4xf64>
  %2 = nn.einsum "a,b->ab" %a, %a : (tensor<4xf64>, tensor<4xf64>) -> tensor<4x4xf64>
  // CHECK: nn.einsum ",a->a" %{{.*}}, %{{.*}} : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
  %3 = nn.einsum ",a->a" %s, %a : (tensor<f64>, tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.einsum "a,a->" %{{.*}}, %{{.*}} : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %4 = nn.einsum "a,a->" %a, %a : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  return
}
