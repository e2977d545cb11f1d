// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// Ids of any rank and both widths.
// CHECK-LABEL: func.func @embedding
func.func @embedding(%table: tensor<256x64xf32>, %ids: tensor<8x16xi32>, %one: tensor<i64>) {
  // CHECK: %[[X:.*]] = nn.embedding %{{.*}}, %{{.*}} : tensor<256x64xf32>, tensor<8x16xi32> -> tensor<8x16x64xf32>
  %x = nn.embedding %table, %ids : tensor<256x64xf32>, tensor<8x16xi32> -> tensor<8x16x64xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %[[X]] : tensor<8x16xi32>, tensor<8x16x64xf32> -> tensor<256x64xf32>
  %d = nn.embedding_grad %ids, %x : tensor<8x16xi32>, tensor<8x16x64xf32> -> tensor<256x64xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : tensor<256x64xf32>, tensor<i64> -> tensor<64xf32>
  %y = nn.embedding %table, %one : tensor<256x64xf32>, tensor<i64> -> tensor<64xf32>
  // A rank's part of the rows.
  // CHECK: nn.embedding partial %{{.*}}, %{{.*}} : tensor<256x64xf32>, tensor<i64> -> tensor<64xf32>
  %z = nn.embedding partial %table, %one : tensor<256x64xf32>, tensor<i64> -> tensor<64xf32>
  // CHECK: nn.embedding_grad partial %{{.*}}, %{{.*}} : tensor<i64>, tensor<64xf32> -> tensor<256x64xf32>
  %e = nn.embedding_grad partial %one, %z : tensor<i64>, tensor<64xf32> -> tensor<256x64xf32>
  return
}
