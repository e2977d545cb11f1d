// RUN: fsdp-opt %s --fsdp-differentiate --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-differentiate --split-input-file --cse | FileCheck %s

// The derivative of x * tanh(x / 2) uses half of x, the hyperbolic tangent and x: backward computes
// all of it from x, and as that is backward of the same unit, MLIR's CSE leaves it there. The activation itself is kept for
// the gradient of @w2.
// CHECK-LABEL: fsdp.step @activation
// CHECK: %[[X:.*]] = nn.einsum "bi,ih->bh"
// CHECK: %[[TANH:.*]] = math.tanh
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[TANH]]
// CHECK: %[[DY:.*]] = nn.einsum "bo,ho->bh"
// CHECK: nn.einsum "bh,bo->ho" %[[Y]],
// CHECK-NOT: %[[TANH]]
// CHECK: %[[HALF_AGAIN:.*]] = arith.mulf %[[X]], %{{.*}} {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK: %[[TANH_AGAIN:.*]] = math.tanh %[[HALF_AGAIN]] {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK: arith.mulf %[[DY]], %[[TANH_AGAIN]]
// CHECK-NOT: math.tanh
// CHECK-NOT: %[[TANH]]{{[^_]}}
// CHECK: nn.einsum "bi,bh->ih"
fsdp.param @w1 : tensor<4x5xf32> unit "one" init <constant, 0.0>
fsdp.param @w2 : tensor<5x2xf32> unit "two" init <constant, 0.0>
fsdp.step @activation train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w1 = fsdp.read @w1 : tensor<4x5xf32>
  %x = nn.einsum "bi,ih->bh" %in, %w1 : (tensor<8x4xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
  %c = arith.constant dense<0.5> : tensor<8x5xf32>
  %half = arith.mulf %x, %c {fsdp.structure = #fsdp.structure<"one">} : tensor<8x5xf32>
  %tanh = math.tanh %half {fsdp.structure = #fsdp.structure<"one">} : tensor<8x5xf32>
  %y = arith.mulf %x, %tanh : tensor<8x5xf32>
  %w2 = fsdp.read @w2 : tensor<5x2xf32>
  %z = nn.einsum "bh,ho->bo" %y, %w2 : (tensor<8x5xf32>, tensor<5x2xf32>) -> tensor<8x2xf32>
  %sum = nn.reduce sum "b o ->" %z : tensor<8x2xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// What would have to be kept instead is no smaller (%x for %exp), or comes from a parameter (%b,
// which would be gathered again for %p): these are stored.
// CHECK-LABEL: fsdp.step @stored
// CHECK: %[[EXP:.*]] = math.exp
// CHECK: %[[P:.*]] = arith.addf
// CHECK: %[[Q:.*]] = math.tanh %[[P]]
// CHECK: arith.divf
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK: fsdp.output "loss"
fsdp.param @w : tensor<4x5xf32> unit "one" init <constant, 0.0>
fsdp.param @b : tensor<5xf32> unit "one" init <constant, 0.0>
fsdp.step @stored train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x5xf32>
  %x = nn.einsum "bi,ih->bh" %in, %w : (tensor<8x4xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
  %exp = math.exp %x : tensor<8x5xf32>
  %read = fsdp.read @b : tensor<5xf32>
  %b = nn.repeat "h -> b h" %read : tensor<5xf32> -> tensor<8x5xf32>
  %p = arith.addf %exp, %b : tensor<8x5xf32>
  %q = math.tanh %p : tensor<8x5xf32>
  %sum = nn.reduce sum "b h ->" %q : tensor<8x5xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
