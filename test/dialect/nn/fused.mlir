// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// Two results, one of them the end of a reduction.
// CHECK-LABEL: func.func @fused
func.func @fused(%x: tensor<8x4xf32>, %bias: tensor<4xf32>) {
  // CHECK: nn.fused %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  // CHECK: nn.yield %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<8xf32>
  %r:2 = nn.fused %x, %bias : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<4xf32>):
    %c = nn.repeat "d -> b d" %b : tensor<4xf32> -> tensor<8x4xf32>
    %s = arith.addf %a, %c : tensor<8x4xf32>
    %t = nn.reduce sum "b d -> b" %s : tensor<8x4xf32> -> tensor<8xf32>
    nn.yield %s, %t : tensor<8x4xf32>, tensor<8xf32>
  }
  return
}
