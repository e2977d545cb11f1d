// RUN: fsdp-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @identity
func.func @identity(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nn.repeat "a b -> a b" %x : tensor<2x6xf32> -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// A repeat that transposes is no identity.
// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  // CHECK: nn.repeat
  %0 = nn.repeat "a b -> b a" %x : tensor<3x3xf32> -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// CHECK-LABEL: func.func @splat
func.func @splat() -> tensor<3x2xi32> {
  // CHECK-NEXT: %[[C:.*]] = arith.constant dense<7> : tensor<3x2xi32>
  // CHECK-NEXT: return %[[C]]
  %c = arith.constant dense<7> : tensor<2xi32>
  %0 = nn.repeat "b -> a b" %c : tensor<2xi32> -> tensor<3x2xi32>
  return %0 : tensor<3x2xi32>
}

// CHECK-LABEL: func.func @elements
func.func @elements() -> tensor<3x2xi32> {
  // CHECK: nn.repeat
  %c = arith.constant dense<[7, 8]> : tensor<2xi32>
  %0 = nn.repeat "b -> a b" %c : tensor<2xi32> -> tensor<3x2xi32>
  return %0 : tensor<3x2xi32>
}
