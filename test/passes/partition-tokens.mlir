// Tokens of which ranks have parts of the rows of each sample are gathered for what depends on tokens before; the result is split again.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>/dev/null | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.numbers
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.accumulate accumulate=2

// CHECK-LABEL: fsdp.segment @train
// CHECK: nn.positions_since [1] documents in %{{.*}} : tensor<2x7xi32> -> tensor<2x7xi32>
// CHECK: nn.positions_since [0, 1] in %{{.*}} : tensor<2x7xi32> -> tensor<2x7xi32>
// CHECK: nn.embedding %{{.*}} : tensor<9x4xf32>, tensor<2x4xi32> -> tensor<2x4x4xf32>
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<9x4xf32> unit "all" init <uniform, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.5, momentum = 0.0> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<4x7xi32>
  %tokens = fsdp.constraint %ids <@mesh, [{?}, {"tensor"}]> : tensor<4x7xi32>
  %at = nn.positions_since [1] documents in %tokens : tensor<4x7xi32> -> tensor<4x7xi32>
  %positions = fsdp.constraint %at <@mesh, [{?}, {"tensor"}]> : tensor<4x7xi32>
  %since = nn.positions_since [0, 1] in %tokens : tensor<4x7xi32> -> tensor<4x7xi32>
  %split = fsdp.constraint %since <@mesh, [{?}, {"tensor"}]> : tensor<4x7xi32>
  %w = fsdp.read @w : tensor<9x4xf32>
  %x = nn.embedding %w, %positions : tensor<9x4xf32>, tensor<4x7xi32> -> tensor<4x7x4xf32>
  %y = nn.embedding %w, %split : tensor<9x4xf32>, tensor<4x7xi32> -> tensor<4x7x4xf32>
  %z = arith.mulf %x, %y : tensor<4x7x4xf32>
  %sum = nn.reduce sum "b t d ->" %z : tensor<4x7x4xf32> -> tensor<f64>
  %weight = arith.constant dense<28.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
