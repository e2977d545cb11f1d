// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @positions_since
func.func @positions_since(%tokens: tensor<8x16xi32>, %wide: tensor<2x3x4xi64>, %row: tensor<5xi32>) {
  // CHECK: nn.positions_since [7] documents in %{{.*}} : tensor<8x16xi32> -> tensor<8x16xi32>
  %0 = nn.positions_since [7] documents in %tokens : tensor<8x16xi32> -> tensor<8x16xi32>
  // CHECK: nn.positions_since [5, 0, 9223372036854775807] in %{{.*}} : tensor<2x3x4xi64> -> tensor<2x3x4xi32>
  %1 = nn.positions_since [5, 0, 9223372036854775807] in %wide : tensor<2x3x4xi64> -> tensor<2x3x4xi32>
  // CHECK: nn.positions_since [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] in %{{.*}} : tensor<5xi32> -> tensor<5xi32>
  %2 = nn.positions_since [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] in %row : tensor<5xi32> -> tensor<5xi32>
  return
}
