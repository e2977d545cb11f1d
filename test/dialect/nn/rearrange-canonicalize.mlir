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

// What one op splits and moves, the other moves back and merges.
// CHECK-LABEL: func.func @inverse
func.func @inverse(%x: tensor<2x8x12xf32>) -> tensor<2x8x12xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nn.rearrange "b s (h d) -> b h s d" %x : tensor<2x8x12xf32> -> tensor<2x3x8x4xf32>
  %1 = nn.rearrange "i k j l -> i j (k l)" %0 : tensor<2x3x8x4xf32> -> tensor<2x8x12xf32>
  return %1 : tensor<2x8x12xf32>
}

// Two rotations are a third one, though the types are equal.
// CHECK-LABEL: func.func @rotations
func.func @rotations(%x: tensor<3x3x3xf32>) -> tensor<3x3x3xf32> {
  // CHECK-COUNT-2: nn.rearrange
  %0 = nn.rearrange "a b c -> b c a" %x : tensor<3x3x3xf32> -> tensor<3x3x3xf32>
  %1 = nn.rearrange "a b c -> b c a" %0 : tensor<3x3x3xf32> -> tensor<3x3x3xf32>
  return %1 : tensor<3x3x3xf32>
}

// Factors of other sizes stand elsewhere.
// CHECK-LABEL: func.func @factors
func.func @factors(%x: tensor<6xf32>) -> tensor<6xf32> {
  // CHECK-COUNT-2: nn.rearrange
  %0 = nn.rearrange "(a b) -> (b a)" %x sizes {a = 2 : i64} : tensor<6xf32> -> tensor<6xf32>
  %1 = nn.rearrange "(b a) -> (a b)" %0 sizes {a = 3 : i64} : tensor<6xf32> -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
