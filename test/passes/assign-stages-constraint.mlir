// A constraint computes nothing: of another unit than the ops around it, as that of an operand of a manual region is, it ends no unit, and
// has the stage of its operand.
// RUN: fsdp-opt %s --fsdp-assign-stages=stages=1,2 | FileCheck %s
// CHECK: math.tanh {{.*}}#fsdp.structure<"a">
// CHECK: fsdp.constraint {{.*}}#fsdp.structure<"c">
// CHECK: math.exp {{.*}}#fsdp.structure<"a">
// CHECK: math.sin {{.*}}#fsdp.structure<"b" stage 1>
// CHECK: arith.mulf {{.*}}#fsdp.structure<"c" stage 1>
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.param @a : tensor<8xf32> unit "a" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
  %0 = math.tanh %a {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
  %1 = fsdp.constraint %0 <@mesh, [{}]> {fsdp.structure = #fsdp.structure<"c">} : tensor<8xf32>
  %2 = math.exp %0 {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
  %3 = math.sin %2 {fsdp.structure = #fsdp.structure<"b">} : tensor<8xf32>
  %4 = arith.mulf %3, %1 {fsdp.structure = #fsdp.structure<"c">} : tensor<8xf32>
  %5 = arith.mulf %4, %x {fsdp.structure = #fsdp.structure<"c">} : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %5 {fsdp.structure = #fsdp.structure<"c">} : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
