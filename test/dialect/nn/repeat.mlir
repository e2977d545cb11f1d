// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// New dimensions anywhere, the old ones in any order, a scalar, an integer, a size of zero.
// CHECK-LABEL: func.func @repeat
func.func @repeat(%bias: tensor<32xf32>, %m: tensor<2x3xi1>, %s: tensor<f64>) {
  // CHECK: nn.repeat "d -> b s d" %{{.*}} : tensor<32xf32> -> tensor<8x16x32xf32>
  %0 = nn.repeat "d -> b s d" %bias : tensor<32xf32> -> tensor<8x16x32xf32>
  // CHECK: nn.repeat "a b -> b n a" %{{.*}} : tensor<2x3xi1> -> tensor<3x0x2xi1>
  %1 = nn.repeat "a b -> b n a" %m : tensor<2x3xi1> -> tensor<3x0x2xi1>
  // CHECK: nn.repeat "-> rows columns" %{{.*}} : tensor<f64> -> tensor<2x1xf64>
  %2 = nn.repeat "-> rows columns" %s : tensor<f64> -> tensor<2x1xf64>
  return
}
