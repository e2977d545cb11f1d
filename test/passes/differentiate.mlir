// RUN: fsdp-opt %s --fsdp-differentiate --split-input-file | %{plain} | FileCheck %s
// RUN: fsdp-opt %s --fsdp-differentiate --split-input-file --cse --canonicalize --loop-invariant-code-motion | %{plain} | FileCheck %s --check-prefix=CLEAN

// The gradient is of sum / weight; it is marked where it completes; the loss is logged after it.
// CHECK-LABEL: fsdp.step @quotient
// CHECK: %[[SUM:.*]] = nn.reduce sum
// CHECK: %[[WEIGHT:.*]] = arith.constant dense<3.000000e+00> : tensor<f64>
// CHECK-NEXT: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f64>
// CHECK-NEXT: %[[SEED:.*]] = arith.divf %[[ONE]], %[[WEIGHT]] : tensor<f64>
// CHECK-NEXT: %[[D:.*]] = arith.truncf %[[SEED]] : tensor<f64> to tensor<f32>
// CHECK-NEXT: %[[G:.*]] = nn.repeat "-> a" %[[D]]
// CHECK-NEXT: fsdp.gradient @w, %[[G]]
// CHECK-NEXT: %[[LOSS:.*]] = arith.divf %[[SUM]], %[[WEIGHT]] : tensor<f64>
// CHECK-NEXT: %[[LOSS32:.*]] = arith.truncf %[[LOSS]] : tensor<f64> to tensor<f32>
// CHECK-NEXT: fsdp.output "loss" %[[LOSS32]]
// CHECK-NEXT: }
// CLEAN-LABEL: fsdp.step @quotient
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
fsdp.step @quotient train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<3xf32>
  %sum = nn.reduce sum "a ->" %w : tensor<3xf32> -> tensor<f64>
  %weight = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A weight that depends on the batch may be 0, and is then 1: nothing counts, and nothing is NaN.
// CHECK-LABEL: fsdp.step @nothing_counts
// CHECK: %[[SUM:.*]] = nn.reduce sum "a ->" %{{.*}} : tensor<3xf32> -> tensor<f64>
// CHECK: %[[WEIGHT:.*]] = nn.reduce sum "a ->" %{{.*}} : tensor<3xf32> -> tensor<f64>
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<f64>
// CHECK: %[[NOTHING:.*]] = arith.cmpf oeq, %[[WEIGHT]], %[[ZERO]] : tensor<f64>
// CHECK: %[[DIVISOR:.*]] = arith.select %[[NOTHING]], %{{.*}}, %[[WEIGHT]] : tensor<i1>, tensor<f64>
// CHECK: arith.divf %{{.*}}, %[[DIVISOR]] : tensor<f64>
// CHECK: fsdp.gradient @w
// CHECK: %[[AGAIN:.*]] = arith.select %{{.*}}, %{{.*}}, %[[WEIGHT]] : tensor<i1>, tensor<f64>
// CHECK: arith.divf %[[SUM]], %[[AGAIN]] : tensor<f64>
// CLEAN-LABEL: fsdp.step @nothing_counts
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
fsdp.step @nothing_counts train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<3xf32>
  %mask = fsdp.input "mask" sample_dim 0 : tensor<3xf32>
  %x = arith.mulf %w, %mask : tensor<3xf32>
  %sum = nn.reduce sum "a ->" %x : tensor<3xf32> -> tensor<f64>
  %weight = nn.reduce sum "a ->" %mask : tensor<3xf32> -> tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Two layers: backward reads each weight again, right before its use; the first layer's weight is not
// read again, because the input needs no cotangent. The clean-up passes of MLIR leave both
// reads of @w2 alone.
// CHECK-LABEL: fsdp.step @layers
// CHECK: %[[W2:.*]] = fsdp.read @w2
// CHECK: %[[Y:.*]] = nn.einsum "bh,ho->bo" %{{.*}}, %[[W2]]
// CHECK: %[[DY:.*]] = nn.repeat "-> b o"
// CHECK-NEXT: %[[AGAIN:.*]] = fsdp.read @w2
// CHECK-NEXT: %[[DT:.*]] = nn.einsum "bo,ho->bh" %[[DY]], %[[AGAIN]]
// CHECK-NEXT: %[[G2:.*]] = nn.einsum "bh,bo->ho"
// CHECK-NEXT: fsdp.gradient @w2, %[[G2]]
// CHECK-NOT: fsdp.read
// CHECK: %[[G1:.*]] = nn.einsum "bi,bh->ih"
// CHECK-NEXT: fsdp.gradient @w1, %[[G1]]
// CHECK-NOT: fsdp.read
// CHECK: fsdp.output "loss"
// CLEAN-LABEL: fsdp.step @layers
// CLEAN: fsdp.read @w1
// CLEAN: fsdp.read @w2
// CLEAN: fsdp.read @w2
// CLEAN-NOT: fsdp.read
fsdp.param @w1 : tensor<4x5xf32> unit "one" init <constant, 0.0>
fsdp.param @w2 : tensor<5x2xf32> unit "two" init <constant, 0.0>
fsdp.step @layers train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w1 = fsdp.read @w1 : tensor<4x5xf32>
  %h = nn.einsum "bi,ih->bh" %x, %w1 : (tensor<8x4xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
  %t = math.tanh %h : tensor<8x5xf32>
  %w2 = fsdp.read @w2 : tensor<5x2xf32>
  %y = nn.einsum "bh,ho->bo" %t, %w2 : (tensor<8x5xf32>, tensor<5x2xf32>) -> tensor<8x2xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<8x2xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A value that is computed from a parameter alone is computed again from a new read: neither the read
// nor the broadcast lives from forward into backward.
// CHECK-LABEL: fsdp.step @broadcast
// CHECK: fsdp.read @scale
// CHECK: %[[DY:.*]] = nn.repeat "-> b d"
// CHECK: %[[AGAIN:.*]] = fsdp.read @scale
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[AGAIN]]
// CHECK-NEXT: %[[REP:.*]] = nn.repeat "d -> b d" %[[WIDE]]
// CHECK-NEXT: arith.mulf %[[DY]], %[[REP]]
// CHECK: fsdp.gradient @scale
// CHECK: fsdp.gradient @w
// CLEAN-LABEL: fsdp.step @broadcast
fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.param @scale : tensor<4xbf16> unit "w" init <constant, 1.0>
fsdp.step @broadcast train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4xf32>
  %wide = nn.repeat "d -> b d" %w : tensor<4xf32> -> tensor<8x4xf32>
  %h = arith.mulf %x, %wide : tensor<8x4xf32>
  %narrow = fsdp.read @scale : tensor<4xbf16>
  %scale = arith.extf %narrow : tensor<4xbf16> to tensor<4xf32>
  %rows = nn.repeat "d -> b d" %scale : tensor<4xf32> -> tensor<8x4xf32>
  %y = arith.mulf %h, %rows : tensor<8x4xf32>
  %sum = nn.reduce sum "b d ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A parameter that is used twice: its contributions are added, and its gradient is marked once, after
// the last of them. A frozen parameter has none, but is read again where backward uses it.
// CHECK-LABEL: fsdp.step @tied
// CHECK: %[[FROZEN:.*]] = fsdp.read @frozen
// CHECK: %[[LAST:.*]] = arith.mulf
// CHECK: fsdp.read @frozen
// CHECK: fsdp.read @w
// CHECK: %[[FIRST:.*]] = arith.mulf
// CHECK: %[[G:.*]] = arith.addf
// CHECK-NEXT: fsdp.gradient @w, %[[G]]
// CHECK-NOT: fsdp.gradient
// CLEAN-LABEL: fsdp.step @tied
fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.param @frozen : tensor<4xf32> unit "w" init <constant, 0.0> frozen
fsdp.step @tied train optimizer <sgd, lr = 0.1> {
  %f = fsdp.read @frozen : tensor<4xf32>
  %w = fsdp.read @w : tensor<4xf32>
  %h = arith.mulf %w, %f : tensor<4xf32>
  %e = math.exp %h : tensor<4xf32>
  %again = fsdp.read @w : tensor<4xf32>
  %y = arith.mulf %e, %again : tensor<4xf32>
  %sum = nn.reduce sum "d ->" %y : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A metric is no part of the loss: nothing is differentiated through it, and its quotient stands
// after backward. A weight that the inputs give is divided by as it is.
// CHECK-LABEL: fsdp.step @metric
// CHECK: %[[COUNTS:.*]] = fsdp.input "counts"
// CHECK: %[[WEIGHT:.*]] = nn.reduce sum "b ->" %[[COUNTS]]
// CHECK: %[[HITS:.*]] = nn.reduce sum
// CHECK: %[[DIVISOR:.*]] = arith.select %{{.*}}, %{{.*}}, %[[WEIGHT]]
// CHECK: %[[SEED:.*]] = arith.divf %{{.*}}, %[[DIVISOR]]
// CHECK: nn.cross_entropy_grad
// CHECK: fsdp.gradient @w
// CHECK: %[[OF_LOSS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[WEIGHT]]
// CHECK: arith.divf %{{.*}}, %[[OF_LOSS]]
// CHECK: fsdp.output "loss"
// CHECK: %[[OF_METRIC:.*]] = arith.select %{{.*}}, %{{.*}}, %[[WEIGHT]]
// CHECK: arith.divf %[[HITS]], %[[OF_METRIC]]
// CHECK: fsdp.output "accuracy"
// CLEAN-LABEL: fsdp.step @metric
fsdp.param @w : tensor<4x3xf32> unit "w" init <constant, 0.0>
fsdp.step @metric train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %label = fsdp.input "label" sample_dim 0 : tensor<8xi32>
  %counts = fsdp.input "counts" sample_dim 0 : tensor<8xf32>
  %w = fsdp.read @w : tensor<4x3xf32>
  %logits = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %ce, %lse = nn.cross_entropy %logits, %label : tensor<8x3xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
  %sum = nn.reduce sum "b ->" %ce : tensor<8xf32> -> tensor<f64>
  %weight = nn.reduce sum "b ->" %counts : tensor<8xf32> -> tensor<f64>
  fsdp.loss %sum over %weight
  %guess = nn.argmax %logits : tensor<8x3xf32> -> tensor<8xi32>
  %hit = arith.cmpi eq, %guess, %label : tensor<8xi32>
  %one = arith.uitofp %hit : tensor<8xi1> to tensor<8xf32>
  %hits = nn.reduce sum "b ->" %one : tensor<8xf32> -> tensor<f64>
  fsdp.metric "accuracy" %hits over %weight
}

// -----

// Evaluation has loss and metrics as sums and weights, and no gradient.
// CHECK-LABEL: fsdp.step @evaluate
// CHECK-NOT: fsdp.gradient
// CHECK-NOT: arith.divf
// CHECK: %[[WEIGHT:.*]] = arith.constant dense<8.0
// CHECK-NEXT: fsdp.output_sum "other" %[[W:.*]] over %[[WEIGHT]]
// CHECK-NEXT: fsdp.output_sum "loss" %[[W]] over %[[WEIGHT]]
// CLEAN-LABEL: fsdp.step @evaluate
fsdp.param @w : tensor<f64> unit "w" init <constant, 0.0>
fsdp.step @evaluate evaluate {
  %w = fsdp.read @w : tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.metric "other" %w over %weight
  fsdp.loss %w over %weight
}
