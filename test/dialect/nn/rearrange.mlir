// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// Split, reorder, merge; sizes only where neither shape tells them; '1' for a dimension of size one.
// CHECK-LABEL: func.func @rearrange
func.func @rearrange(%p: tensor<8x16x96xf32>, %z: tensor<0x6xi32>, %v: tensor<6x4xf32>, %s: tensor<1x1xf32>) {
  // CHECK: nn.rearrange "b s (h d) -> b h s d" %{{.*}} : tensor<8x16x96xf32> -> tensor<8x12x16x8xf32>
  %0 = nn.rearrange "b s (h d) -> b h s d" %p : tensor<8x16x96xf32> -> tensor<8x12x16x8xf32>
  // CHECK: nn.rearrange "b s (h d) -> (b s) (d h)" %{{.*}} sizes {h = 12 : i64} : tensor<8x16x96xf32> -> tensor<128x96xf32>
  %1 = nn.rearrange "b s (h d) -> (b s) (d h)" %p sizes {h = 12} : tensor<8x16x96xf32> -> tensor<128x96xf32>
  // CHECK: nn.rearrange "a b -> b 1 a" %{{.*}} : tensor<0x6xi32> -> tensor<6x1x0xi32>
  %2 = nn.rearrange "a b -> b 1 a" %z : tensor<0x6xi32> -> tensor<6x1x0xi32>
  // CHECK: nn.rearrange "(a b) c -> a (b c)" %{{.*}} : tensor<6x4xf32> -> tensor<2x12xf32>
  %3 = nn.rearrange "(a b) c -> a (b c)" %v : tensor<6x4xf32> -> tensor<2x12xf32>
  // CHECK: nn.rearrange "1 1 ->" %{{.*}} : tensor<1x1xf32> -> tensor<f32>
  %4 = nn.rearrange "1 1 ->" %s : tensor<1x1xf32> -> tensor<f32>
  return
}
