// What a checkpoint does not keep is computed again in backward, and stays there under MLIR's CSE and canonicalization.
// RUN: fsdp-opt %s --split-input-file --fsdp-differentiate | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-differentiate --cse --canonicalize --cse | FileCheck %s

// Backward of a region begins with the computation of what it needs again, from %x, which is kept, with reads of its own.
// The last product of the region is not computed again: its result is kept, and nothing else needs it. Forward values of the
// region end with forward.
// CHECK-LABEL: fsdp.step @full
// CHECK: %[[X:.*]] = fsdp.input
// CHECK: %[[P:.*]] = nn.einsum "bi,io->bo" %[[X]],
// CHECK: %[[H:.*]] = math.tanh %[[P]]
// CHECK: %[[Q:.*]] = nn.einsum "bi,io->bo" %[[H]],
// CHECK-NOT: %[[H]]{{[^_0-9]}}
// CHECK: %[[DY:.*]] = arith.addf {{.*}} {fsdp.structure = #fsdp.structure<backward>}
// CHECK-NEXT: %[[A:.*]] = fsdp.read @a {fsdp.structure = #fsdp.structure<"one" backward>}
// CHECK-NEXT: %[[P2:.*]] = nn.einsum "bi,io->bo" %[[X]], %[[A]] {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK-NEXT: %[[H2:.*]] = math.tanh %[[P2]] {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK-NEXT: fsdp.read @b
// CHECK-NEXT: nn.einsum "bo,io->bi"
// CHECK: nn.einsum "bi,bo->io" %[[H2]], %[[DY]]
// CHECK-NOT: math.tanh
// CHECK-NOT: nn.einsum "bi,io->bo"
// CHECK: fsdp.gradient @a
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @a : tensor<4x4xf32> unit "one" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "two" init <normal, 2.0e-02>
fsdp.step @full train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.checkpoint full : tensor<8x4xf32> {
    %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"one">} : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"one">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %h = math.tanh %p {fsdp.structure = #fsdp.structure<"one">} : tensor<8x4xf32>
    %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"two">} : tensor<4x4xf32>
    %q = nn.einsum "bi,io->bo" %h, %b {fsdp.structure = #fsdp.structure<"two">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %q : tensor<8x4xf32>
  }
  %square = arith.mulf %y, %y : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// With `selective` the product is kept, and the rest computed from it: nothing is read again for that. A product that sums over
// nothing is no contraction, but it may take %p in another sharding, so %p has a name of its own in backward.
// CHECK-LABEL: fsdp.step @selective
// CHECK: %[[P:.*]] = nn.einsum "bi,io->bo"
// CHECK: %[[S:.*]] = nn.einsum "bo,b->bo" %[[P]], %[[SCALE:.*]] {fsdp
// CHECK: %[[H:.*]] = math.tanh %[[S]] {fsdp
// CHECK-NOT: %[[S]]{{[^_0-9]}}
// CHECK: arith.addf {{.*}} {fsdp.structure = #fsdp.structure<backward>}
// CHECK: %[[AGAIN:.*]] = fsdp.constraint %[[P]] <@mesh, [{?}, {?}]> {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK: %[[S2:.*]] = nn.einsum "bo,b->bo" %[[AGAIN]], %[[SCALE]] {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK-NEXT: %[[H2:.*]] = math.tanh %[[S2]] {fsdp.structure = #fsdp.structure<"one" backward recomputed>}
// CHECK-NOT: nn.einsum "bi,io->bo"
// CHECK: nn.einsum "bi,bo->io" %[[H2]],
// CHECK: fsdp.gradient @a
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @a : tensor<4x4xf32> unit "one" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "two" init <normal, 2.0e-02>
fsdp.step @selective train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %scale = fsdp.input "scale" sample_dim 0 : tensor<8xf32>
  %y = fsdp.checkpoint selective : tensor<8x4xf32> {
    %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"one">} : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"one">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %s = nn.einsum "bo,b->bo" %p, %scale {fsdp.structure = #fsdp.structure<"one">} : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>
    %h = math.tanh %s {fsdp.structure = #fsdp.structure<"one">} : tensor<8x4xf32>
    %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"two">} : tensor<4x4xf32>
    %q = nn.einsum "bi,io->bo" %h, %b {fsdp.structure = #fsdp.structure<"two">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %q : tensor<8x4xf32>
  }
  %square = arith.mulf %y, %y : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Each region is computed again directly before its backward, in the reverse order of forward. Masks are those of forward: draws go
// by the name. A chain of elementwise ops is computed from what its region computes again, not from forward.
// CHECK-LABEL: fsdp.step @order
// CHECK: arith.addf {{.*}} {fsdp.structure = #fsdp.structure<backward>}
// CHECK: math.exp {{.*}}<"two" backward recomputed>
// CHECK: fsdp.dropout {{.*}} name "two.drop" {fsdp.structure = #fsdp.structure<"two" backward recomputed>}
// CHECK: nn.einsum "bi,bo->io"
// CHECK: fsdp.gradient @b
// CHECK: nn.einsum "bi,io->bo" {{.*}}<"one" backward recomputed>
// CHECK: math.tanh {{.*}}<"one" backward recomputed>
// CHECK: fsdp.gradient @a
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @a : tensor<4x4xf32> unit "one" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "two" init <normal, 2.0e-02>
fsdp.step @order train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.checkpoint full : tensor<8x4xf32> {
    %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"one">} : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"one">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %h = math.tanh %p {fsdp.structure = #fsdp.structure<"one">} : tensor<8x4xf32>
    %hx = arith.mulf %h, %x {fsdp.structure = #fsdp.structure<"one">} : tensor<8x4xf32>
    fsdp.yield %hx : tensor<8x4xf32>
  }
  %z = fsdp.checkpoint full : tensor<8x4xf32> {
    %e = math.exp %y {fsdp.structure = #fsdp.structure<"two">} : tensor<8x4xf32>
    %d = fsdp.dropout %e rate 1.0e-01 name "two.drop" {fsdp.structure = #fsdp.structure<"two">} : tensor<8x4xf32>
    %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"two">} : tensor<4x4xf32>
    %q = nn.einsum "bi,io->bo" %d, %b {fsdp.structure = #fsdp.structure<"two">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %q : tensor<8x4xf32>
  }
  %square = arith.mulf %z, %z : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
