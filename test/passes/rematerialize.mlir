// RUN: fsdp-opt %s --split-input-file --fsdp-rematerialize | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: fsdp-opt %s --split-input-file --fsdp-rematerialize=policy=every:2 | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fsdp-opt %s --split-input-file --fsdp-rematerialize=policy=selective | FileCheck %s --check-prefix=SELECTIVE
// RUN: fsdp-opt %s --split-input-file --fsdp-rematerialize=policy=none | FileCheck %s --check-prefix=NONE

// Units between the first and the last are blocks: from the first use of one to the first use of the next, the sum
// with the stream, which belongs to another unit, among them. Reads stand where they are used first. An input stays
// in front, a metric behind; what both use is a result.
// CHECK-LABEL: fsdp.step @train
// CHECK: %[[E:.*]] = nn.einsum "bi,io->bo" %{{.*}}#fsdp.structure<"first">
// FULL: %[[LATE:.*]] = fsdp.input "late"
// FULL: %[[A:.*]]:2 = fsdp.checkpoint full : tensor<8x4xf32>, tensor<f64> {
// FULL-NEXT: fsdp.read @a
// FULL-NEXT: nn.einsum "bi,io->bo" %[[E]],
// FULL-NEXT: math.tanh
// FULL-NEXT: arith.mulf %{{.*}}, %[[LATE]]
// FULL-NEXT: %[[SUM:.*]] = arith.addf %[[E]], %{{.*}} {fsdp.structure = #fsdp.structure<"first">}
// FULL-NEXT: %[[TOTAL:.*]] = nn.reduce sum
// FULL-NEXT: fsdp.yield %[[SUM]], %[[TOTAL]]
// FULL: fsdp.metric "total" %[[A]]#1 over
// FULL: %[[B:.*]] = fsdp.checkpoint full : tensor<8x4xf32> {
// FULL-NEXT: fsdp.read @b
// FULL-NEXT: nn.einsum "bi,io->bo" %[[A]]#0,
// FULL: fsdp.yield
// FULL: %[[C:.*]] = fsdp.checkpoint full : tensor<8x4xf32> {
// FULL: nn.einsum "bi,io->bo" %[[B]],
// FULL: fsdp.yield
// FULL: fsdp.read @last
// FULL-NEXT: nn.einsum "bi,io->bo" %[[C]],

// Two blocks in a row; the last region has what is left.
// TWO: fsdp.input "late"
// TWO: fsdp.checkpoint full
// TWO: fsdp.read @a
// TWO: fsdp.read @b
// TWO-NOT: fsdp.read
// TWO: }
// TWO: fsdp.checkpoint full : tensor<8x4xf32> {
// TWO: fsdp.read @c
// TWO-NOT: fsdp.read
// TWO: }
// TWO: fsdp.read @last

// SELECTIVE-LABEL: fsdp.step @train
// SELECTIVE-COUNT-3: fsdp.checkpoint selective
// SELECTIVE-LABEL: fsdp.step @evaluate
// NONE-NOT: fsdp.checkpoint full

// A step that evaluates has no backward.
// CHECK-LABEL: fsdp.step @evaluate
// CHECK-NOT: fsdp.checkpoint
fsdp.param @first : tensor<4x4xf32> unit "first" init <normal, 2.0e-02>
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
fsdp.param @c : tensor<4x4xf32> unit "c" init <normal, 2.0e-02>
fsdp.param @last : tensor<4x4xf32> unit "last" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %first = fsdp.read @first : tensor<4x4xf32>
  %a = fsdp.read @a : tensor<4x4xf32>
  %e = nn.einsum "bi,io->bo" %x, %first {fsdp.structure = #fsdp.structure<"first">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %pa = nn.einsum "bi,io->bo" %e, %a : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %late = fsdp.input "late" sample_dim 0 : tensor<8x4xf32>
  %ta = math.tanh %pa : tensor<8x4xf32>
  %ma = arith.mulf %ta, %late : tensor<8x4xf32>
  %ra = arith.addf %e, %ma {fsdp.structure = #fsdp.structure<"first">} : tensor<8x4xf32>
  %total = nn.reduce sum "b o ->" %ra : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.metric "total" %total over %weight
  %b = fsdp.read @b : tensor<4x4xf32>
  %pb = nn.einsum "bi,io->bo" %ra, %b : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %tb = math.tanh %pb : tensor<8x4xf32>
  %c = fsdp.read @c : tensor<4x4xf32>
  %pc = nn.einsum "bi,io->bo" %tb, %c : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %tc = math.tanh %pc : tensor<8x4xf32>
  %last = fsdp.read @last : tensor<4x4xf32>
  %y = nn.einsum "bi,io->bo" %tc, %last : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  fsdp.loss %sum over %weight
}
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %first = fsdp.read @first : tensor<4x4xf32>
  %e = nn.einsum "bi,io->bo" %x, %first : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %a = fsdp.read @a : tensor<4x4xf32>
  %pa = nn.einsum "bi,io->bo" %e, %a : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %last = fsdp.read @last : tensor<4x4xf32>
  %y = nn.einsum "bi,io->bo" %pa, %last : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A block with a region of the model's own stays as it is, and parts the blocks around it.
// CHECK-LABEL: fsdp.step @own
// CHECK: fsdp.checkpoint full
// CHECK: fsdp.read @a
// CHECK: }
// CHECK: fsdp.read @b
// CHECK-NEXT: nn.einsum
// CHECK-NEXT: fsdp.checkpoint selective
// CHECK: fsdp.read @b
// CHECK: }
// CHECK: fsdp.checkpoint full
// CHECK: fsdp.read @c
// CHECK: }
// CHECK: fsdp.read @last
fsdp.param @first : tensor<4x4xf32> unit "first" init <normal, 2.0e-02>
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
fsdp.param @c : tensor<4x4xf32> unit "c" init <normal, 2.0e-02>
fsdp.param @last : tensor<4x4xf32> unit "last" init <normal, 2.0e-02>
fsdp.step @own train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %first = fsdp.read @first : tensor<4x4xf32>
  %e = nn.einsum "bi,io->bo" %x, %first : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %a = fsdp.read @a : tensor<4x4xf32>
  %pa = nn.einsum "bi,io->bo" %e, %a : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %b = fsdp.read @b : tensor<4x4xf32>
  %pb = nn.einsum "bi,io->bo" %pa, %b : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %tb = fsdp.checkpoint selective : tensor<8x4xf32> {
    %again = fsdp.read @b : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %pb, %again : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %t = math.tanh %p : tensor<8x4xf32>
    fsdp.yield %t : tensor<8x4xf32>
  }
  %c = fsdp.read @c : tensor<4x4xf32>
  %pc = nn.einsum "bi,io->bo" %tb, %c : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %last = fsdp.read @last : tensor<4x4xf32>
  %y = nn.einsum "bi,io->bo" %pc, %last : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
