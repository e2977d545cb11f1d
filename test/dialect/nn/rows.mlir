// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// Rows of any rank; labels of both widths.
// CHECK-LABEL: func.func @rows
func.func @rows(%logits: tensor<8x10xf32>, %label: tensor<8xi32>, %one: tensor<3xbf16>, %l: tensor<i64>,
                %deep: tensor<2x3x4xf64>) {
  // CHECK: %{{.*}}, %[[LSE:.*]] = nn.cross_entropy %{{.*}}, %{{.*}} : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
  %loss, %lse = nn.cross_entropy %logits, %label : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %[[LSE]], %{{.*}} : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %label, %lse, %loss : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
  // Losses of 16-bit logits are f32.
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} : tensor<3xbf16>, tensor<i64> -> tensor<f32>, tensor<f32>
  %0:2 = nn.cross_entropy %one, %l : tensor<3xbf16>, tensor<i64> -> tensor<f32>, tensor<f32>
  // A rank's part of the classes.
  %count = arith.constant dense<7> : tensor<i64>
  // CHECK: nn.partial_cross_entropy %{{.*}}, %{{.*}} of %{{.*}} : tensor<3xbf16>, tensor<i64> -> tensor<f32>, tensor<f32>, tensor<f32>
  %p:3 = nn.partial_cross_entropy %one, %l of %count : tensor<3xbf16>, tensor<i64> -> tensor<f32>, tensor<f32>, tensor<f32>
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %[[LSE]], %{{.*}} of %{{.*}} : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
  %e = nn.cross_entropy_grad %logits, %label, %lse, %loss of %count : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
  // With their gradients.
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} upstream %[[LSE]] : tensor<8x10xf32>, tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
  %f:3 = nn.cross_entropy %logits, %label upstream %lse : tensor<8x10xf32>, tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
  // CHECK: nn.partial_cross_entropy %{{.*}}, %{{.*}} of %{{.*}} upstream %{{.*}} : tensor<3xbf16>, tensor<i64> upstream tensor<f32> -> tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xbf16>
  %g:4 = nn.partial_cross_entropy %one, %l of %count upstream %0#0 : tensor<3xbf16>, tensor<i64> upstream tensor<f32> -> tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xbf16>
  // CHECK: nn.argmax %{{.*}} : tensor<2x3x4xf64> -> tensor<2x3xi64>
  %1 = nn.argmax %deep : tensor<2x3x4xf64> -> tensor<2x3xi64>
  return
}
