// From two annotated weights the column and row split of a block: the first product is split over its columns, what
// stands between too, the second product sums partial results, which are added once. Backward follows, with the
// gradients of both weights split alike. The numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-to-global | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local 2>/dev/null | FileCheck %s --check-prefix=LOCAL
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t

// CHECK-LABEL: fsdp.step @train
// CHECK: nn.einsum "bi,io->bo" {{.*}}[{"fsdp"}, {"tensor"}]
// CHECK: math.tanh {{.*}}[{"fsdp"}, {"tensor"}]
// CHECK: nn.einsum "bi,io->bo" {{.*}}[{"fsdp"}, {}], unreduced = {"tensor"}
// CHECK: fsdp.update @w2

// LOCAL-LABEL: fsdp.segment @train
// LOCAL: nn.einsum "bi,io->bo" {{.*}} : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
// LOCAL: nn.einsum "bi,io->bo" {{.*}} : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// LOCAL: fsdp.all_reduce sum {{.*}} over ["tensor"] : tensor<4x6xf32>
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w1 : tensor<6x8xf32> unit "u" init <normal, 0.5>
fsdp.param @w2 : tensor<8x6xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
  %r1 = fsdp.read @w1 : tensor<6x8xf32>
  %w1 = fsdp.constraint %r1 <@mesh, [{}, {"tensor"}]> : tensor<6x8xf32>
  %h = nn.einsum "bi,io->bo" %x, %w1 : (tensor<8x6xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
  %t = math.tanh %h : tensor<8x8xf32>
  %r2 = fsdp.read @w2 : tensor<8x6xf32>
  %w2 = fsdp.constraint %r2 <@mesh, [{"tensor"}, {}]> : tensor<8x6xf32>
  %y = nn.einsum "bi,io->bo" %t, %w2 : (tensor<8x8xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %s = arith.mulf %y, %y : tensor<8x6xf32>
  %sum = nn.reduce sum "b o ->" %s : tensor<8x6xf32> -> tensor<f64>
  %one = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %one
}
