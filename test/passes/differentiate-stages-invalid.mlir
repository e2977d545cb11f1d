// Stages in IR that was written by hand: forward runs from the first to the last, and each has a unit.
// RUN: fsdp-opt %s --fsdp-differentiate -o %t.mlir
// RUN: sed 's/structure<"a">/structure<"a" stage 1>/' %s | not fsdp-opt --fsdp-differentiate 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: 'nn.reduce' op of stage 0 uses a value of stage 1, which is computed later; give it that stage or a later one
// ORDER: note: the value is made here
// The second unit without its stage is in the first one.
// RUN: sed 's/structure<"b" stage 1>/structure<"b">/' %s | not fsdp-opt --fsdp-differentiate 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: 'fsdp.step' op 'train' has no op of stage 1 of 2; give each stage a unit, or the module fewer stages
// RUN: sed 's/structure<"b" stage 1>/structure<"b" stage 7>/' %s | not fsdp-opt --fsdp-differentiate 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: 'fsdp.read' op has stage 7, expected stages below 2, the number that the module has
// RUN: sed 's/fsdp.stages = 2/fsdp.stages = -2/' %s | not fsdp-opt --fsdp-differentiate 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: error: the module has -2 stages, expected 1 to 1048576
module attributes {fsdp.stages = 2 : i64} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
  fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
  fsdp.step @train train optimizer <sgd, lr = 0.1> {
    %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
    %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">} : tensor<4x4xf32>
    %0 = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %c = nn.reduce sum "b o -> b" %0 {fsdp.structure = #fsdp.structure<"c">} : tensor<8x4xf32> -> tensor<8xf32>
    %d = nn.repeat "b -> b o" %c {fsdp.structure = #fsdp.structure<"c">} : tensor<8xf32> -> tensor<8x4xf32>
    %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"b" stage 1>} : tensor<4x4xf32>
    %1 = nn.einsum "bi,io->bo" %d, %b {fsdp.structure = #fsdp.structure<"b" stage 1>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %sum = nn.reduce sum "b o ->" %1 {fsdp.structure = #fsdp.structure<"b" stage 1>} : tensor<8x4xf32> -> tensor<f64>
    %weight = arith.constant dense<32.0> : tensor<f64>
    fsdp.loss %sum over %weight
  }
}
