// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<8x16xf32>, %n: tensor<4xi32>, %e: tensor<8x0xf32>) {
  // CHECK: nn.slice %{{.*}} dim 1 start 4 : tensor<8x16xf32> -> tensor<8x5xf32>
  %0 = nn.slice %x dim 1 start 4 : tensor<8x16xf32> -> tensor<8x5xf32>
  // CHECK: nn.slice %{{.*}} dim 0 start 4 : tensor<4xi32> -> tensor<0xi32>
  %1 = nn.slice %n dim 0 start 4 : tensor<4xi32> -> tensor<0xi32>
  // CHECK: nn.pad %{{.*}} dim 0 low 2 : tensor<8x5xf32> -> tensor<11x5xf32>
  %2 = nn.pad %0 dim 0 low 2 : tensor<8x5xf32> -> tensor<11x5xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<8x16xf32>, tensor<8x0xf32>, tensor<8x5xf32>) -> tensor<8x21xf32>
  %3 = nn.concat %x, %e, %0 dim 1 : (tensor<8x16xf32>, tensor<8x0xf32>, tensor<8x5xf32>) -> tensor<8x21xf32>
  // CHECK: nn.concat %{{.*}} dim 0 : (tensor<4xi32>) -> tensor<4xi32>
  %4 = nn.concat %n dim 0 : (tensor<4xi32>) -> tensor<4xi32>
  return
}
