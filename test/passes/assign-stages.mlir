// RUN: fsdp-opt %s --split-input-file --fsdp-assign-stages=stages=1,2 | FileCheck %s --check-prefixes=CHECK,GIVEN
// RUN: fsdp-opt %s --split-input-file --fsdp-assign-stages | FileCheck %s --check-prefixes=CHECK,AUTO

// Units are divided in the order of forward; reads belong to the stage that uses them. What follows from inputs alone has no stage; a
// loss has the stage of its operand. The product of unit `c` is dearer than those of `a` and `b` together, so `auto` leaves it alone.
// CHECK: fsdp.param @a : tensor<4x4xf32> unit "a"
// CHECK-LABEL: fsdp.step @train
// CHECK: %[[MASK:.*]] = arith.mulf %{{.*}} : tensor<8x4xf32>
// CHECK: %[[A:.*]] = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">}
// CHECK: nn.einsum {{.*}}#fsdp.structure<"a">
// GIVEN: fsdp.read @b {fsdp.structure = #fsdp.structure<"b" stage 1>}
// GIVEN: nn.einsum {{.*}}#fsdp.structure<"b" stage 1>
// AUTO: fsdp.read @b {fsdp.structure = #fsdp.structure<"b">}
// AUTO: nn.einsum {{.*}}#fsdp.structure<"b">
// CHECK: fsdp.read @c {fsdp.structure = #fsdp.structure<"c" stage 1>}
// CHECK: nn.einsum {{.*}}#fsdp.structure<"c" stage 1>
// CHECK: fsdp.loss {{.*}}#fsdp.structure<stage 1>
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
fsdp.param @c : tensor<4x32xf32> unit "c" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %mask = arith.mulf %x, %x : tensor<8x4xf32>
  %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">} : tensor<4x4xf32>
  %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"b">} : tensor<4x4xf32>
  %c = fsdp.read @c {fsdp.structure = #fsdp.structure<"c">} : tensor<4x32xf32>
  %0 = nn.einsum "bi,io->bo" %mask, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.einsum "bi,io->bo" %0, %b {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %2 = arith.mulf %1, %mask {fsdp.structure = #fsdp.structure<"b">} : tensor<8x4xf32>
  %3 = nn.einsum "bi,io->bo" %2, %c {fsdp.structure = #fsdp.structure<"c">} : (tensor<8x4xf32>, tensor<4x32xf32>) -> tensor<8x32xf32>
  %sum = nn.reduce sum "b o ->" %3 {fsdp.structure = #fsdp.structure<"c">} : tensor<8x32xf32> -> tensor<f64>
  %weight = arith.constant dense<256.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A unit that is used in two places counts twice; its parameters that different ranks use become units: the table of both ends, what
// the first stage alone uses, and what the last one does. The read of the table is one for each stage.
// CHECK: fsdp.param @table : tensor<4x4xf32> unit "ends.stage0_1"
// CHECK: fsdp.param @first : tensor<4xf32> unit "ends.stage0"
// CHECK: fsdp.param @last : tensor<4xf32> unit "ends.stage1"
// CHECK: fsdp.param @middle : tensor<4x4xf32> unit "middle"
// CHECK-LABEL: fsdp.step @train
// CHECK: fsdp.read @table {fsdp.structure = #fsdp.structure<"ends">}
// CHECK: fsdp.read @table {fsdp.structure = #fsdp.structure<"ends" stage 1>}
fsdp.mesh @mesh <["pipeline"=2, "fsdp"=2]>
fsdp.param @table : tensor<4x4xf32> unit "ends" init <normal, 2.0e-02>
fsdp.param @first : tensor<4xf32> unit "ends" init <normal, 2.0e-02>
fsdp.param @last : tensor<4xf32> unit "ends" init <normal, 2.0e-02>
fsdp.param @middle : tensor<4x4xf32> unit "middle" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %table = fsdp.read @table {fsdp.structure = #fsdp.structure<"ends">} : tensor<4x4xf32>
  %0 = nn.einsum "bi,io->bo" %x, %table {fsdp.structure = #fsdp.structure<"ends">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %first = fsdp.read @first {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32>
  %rows = nn.repeat "o -> b o" %first {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32> -> tensor<8x4xf32>
  %1 = arith.addf %0, %rows {fsdp.structure = #fsdp.structure<"ends">} : tensor<8x4xf32>
  %middle = fsdp.read @middle {fsdp.structure = #fsdp.structure<"middle">} : tensor<4x4xf32>
  %2 = nn.einsum "bi,io->bo" %1, %middle {fsdp.structure = #fsdp.structure<"middle">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %last = fsdp.read @last {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32>
  %more = nn.repeat "o -> b o" %last {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32> -> tensor<8x4xf32>
  %3 = arith.addf %2, %more {fsdp.structure = #fsdp.structure<"ends">} : tensor<8x4xf32>
  %4 = nn.einsum "bi,io->bo" %3, %table {fsdp.structure = #fsdp.structure<"ends">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %4 {fsdp.structure = #fsdp.structure<"ends">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
