// RUN: fsdp-opt %s --fsdp-assign-stages=stages=1,1,1,1 | FileCheck %s

// Training joins a block and the sum with its input in a checkpoint, which is of the block's stage; the evaluation, which has no checkpoints, has the sum apart, as one
// more use of the first unit. It belongs to the stage before it, as in training.
// CHECK-LABEL: fsdp.step @train
// CHECK: math.tanh {{.*}}#fsdp.structure<"a">
// CHECK: fsdp.checkpoint
// CHECK: math.exp {{.*}}#fsdp.structure<"b" stage 1>
// CHECK: arith.addf {{.*}}#fsdp.structure<"a" stage 1>
// CHECK: math.sin {{.*}}#fsdp.structure<"c" stage 2>
// CHECK: math.cos {{.*}}#fsdp.structure<"a" stage 3>
// CHECK-LABEL: fsdp.step @evaluate
// CHECK: math.tanh {{.*}}#fsdp.structure<"a">
// CHECK: math.exp {{.*}}#fsdp.structure<"b" stage 1>
// CHECK: arith.addf {{.*}}#fsdp.structure<"a" stage 1>
// CHECK: math.sin {{.*}}#fsdp.structure<"c" stage 2>
// CHECK: math.cos {{.*}}#fsdp.structure<"a" stage 3>
fsdp.mesh @mesh <["pipeline"=4]>
fsdp.param @w : tensor<4xf32> unit "a" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %0 = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
  %1 = fsdp.checkpoint full : tensor<8x4xf32> {
    %b = math.exp %0 {fsdp.structure = #fsdp.structure<"b">} : tensor<8x4xf32>
    %s = arith.addf %b, %0 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
    fsdp.yield %s : tensor<8x4xf32>
  }
  %2 = math.sin %1 {fsdp.structure = #fsdp.structure<"c">} : tensor<8x4xf32>
  %3 = math.cos %2 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %3 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %0 = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
  %b = math.exp %0 {fsdp.structure = #fsdp.structure<"b">} : tensor<8x4xf32>
  %1 = arith.addf %b, %0 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
  %2 = math.sin %1 {fsdp.structure = #fsdp.structure<"c">} : tensor<8x4xf32>
  %3 = math.cos %2 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %3 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
