// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// Each kind; into a wider float; integers; everything, and nothing at all.
// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<8x16x32xf32>, %n: tensor<4x0xi32>, %h: tensor<3xbf16>) {
  // CHECK: nn.reduce sum "b s d -> b s" %{{.*}} : tensor<8x16x32xf32> -> tensor<8x16xf32>
  %0 = nn.reduce sum "b s d -> b s" %x : tensor<8x16x32xf32> -> tensor<8x16xf32>
  // CHECK: nn.reduce mean "b s d -> d b" %{{.*}} : tensor<8x16x32xf32> -> tensor<32x8xf64>
  %1 = nn.reduce mean "b s d -> d b" %x : tensor<8x16x32xf32> -> tensor<32x8xf64>
  // CHECK: nn.reduce max "a b -> a" %{{.*}} : tensor<4x0xi32> -> tensor<4xi32>
  %2 = nn.reduce max "a b -> a" %n : tensor<4x0xi32> -> tensor<4xi32>
  // CHECK: nn.reduce sum "a ->" %{{.*}} : tensor<3xbf16> -> tensor<f64>
  %3 = nn.reduce sum "a ->" %h : tensor<3xbf16> -> tensor<f64>
  // CHECK: nn.reduce max "a -> a" %{{.*}} : tensor<3xbf16> -> tensor<3xf32>
  %4 = nn.reduce max "a -> a" %h : tensor<3xbf16> -> tensor<3xf32>
  return
}
