// With eps 0 an element whose moments are 0 stays as it is, in all phases: two elements here never have a gradient.
// RUN: fsdp-opt %s --fsdp-to-global | fsdp-run --seed=3 --steps=3 - | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local | fsdp-run --seed=3 --steps=3 - | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-run --seed=3 --steps=3 --numerics=typed - | FileCheck %s
// CHECK-NOT: nan
// CHECK: step 3 loss
// CHECK-NOT: nan
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4xf32> unit "u" init <normal, 1.0>
fsdp.step @train train optimizer <adam, lr = 0.1, eps = 0.0> {
  %w = fsdp.read @w : tensor<4xf32>
  %used = arith.constant dense<[1.0, 0.0, 1.0, 0.0]> : tensor<4xf32>
  %part = arith.mulf %w, %used : tensor<4xf32>
  %square = arith.mulf %part, %part : tensor<4xf32>
  %sum = nn.reduce sum "d ->" %square : tensor<4xf32> -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %one
}
