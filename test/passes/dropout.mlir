// Backward draws the mask of forward; evaluation has none; each rank knows its part of the tensor.
// RUN: fsdp-opt %s --fsdp-derive-evaluation --fsdp-differentiate | %{plain} | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition | %{plain} | FileCheck %s --check-prefix=LOCAL
// RUN: fsdp-opt %s --fsdp-to-scheduled | FileCheck %s --check-prefix=SCHEDULED
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: sed 's/\["fsdp"=3\]/["data"=2, "fsdp"=2]/' %s > %t.2d.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.2d.mlir %t.2d strategy=hsdp

// CHECK-LABEL: fsdp.step @train
// CHECK: fsdp.dropout %{{.*}} rate 2.500000e-01 name "a" : tensor<10x6xf32>
// CHECK: fsdp.dropout %{{.*}} rate 5.000000e-01 name "b" : tensor<4x10xf32>
// CHECK: fsdp.dropout %{{.*}} rate 5.000000e-01 name "b" : tensor<4x10xf32>
// CHECK: fsdp.gradient @w
// CHECK-LABEL: fsdp.step @evaluate
// CHECK-NOT: fsdp.dropout

// LOCAL: fsdp.dropout %{{.*}} name "a" part_of [10, 6] over {{\[\[}}"fsdp"], []] : tensor<4x6xf32>
// LOCAL: fsdp.dropout %{{.*}} name "b" part_of [4, 10] over {{\[\[}}], ["fsdp"]] : tensor<4x4xf32>
// LOCAL: fsdp.dropout %{{.*}} name "b" part_of [4, 10] over {{\[\[}}], ["fsdp"]] : tensor<4x4xf32>

// SCHEDULED: fsdp.launch "{{.*}}dropout{{.*}}step_state(
fsdp.mesh @mesh <["fsdp"=3]>
fsdp.param @w : tensor<6x4xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1, momentum = 0.9> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %w = fsdp.read @w : tensor<6x4xf32>
  %d = fsdp.dropout %x rate 0.25 name "a" : tensor<10x6xf32>
  %z = nn.einsum "bi,io->ob" %d, %w : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<4x10xf32>
  %e = fsdp.dropout %z rate 0.5 name "b" : tensor<4x10xf32>
  %q = arith.mulf %e, %e : tensor<4x10xf32>
  %sum = nn.reduce sum "o b ->" %q : tensor<4x10xf32> -> tensor<f64>
  %weight = arith.constant dense<10.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
