// RUN: fsdp-opt %s --canonicalize | FileCheck %s

// An identity disappears.
// CHECK-LABEL: func.func @identity
func.func @identity(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nn.rearrange "a b -> a b" %x : tensor<2x6xf32> -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// A transpose of a square is no identity, though the types are equal.
// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  // CHECK: nn.rearrange
  %0 = nn.rearrange "a b -> b a" %x : tensor<3x3xf32> -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// A splat has no order.
// CHECK-LABEL: func.func @splat
func.func @splat() -> tensor<3x2xf32> {
  // CHECK-NEXT: %[[C:.*]] = arith.constant dense<2.500000e+00> : tensor<3x2xf32>
  // CHECK-NEXT: return %[[C]]
  %c = arith.constant dense<2.5> : tensor<2x3xf32>
  %0 = nn.rearrange "a b -> b a" %c : tensor<2x3xf32> -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// Other constants have.
// CHECK-LABEL: func.func @elements
func.func @elements() -> tensor<2x1xf32> {
  // CHECK: nn.rearrange
  %c = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %0 = nn.rearrange "1 b -> b 1" %c : tensor<1x2xf32> -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}
