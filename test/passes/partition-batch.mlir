// The batch is the last dimension and does not divide; the model reduces over it besides the loss: a mean, a
// maximum and a sum take part in what each sample computes.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.four
// RUN: sed s/fsdp\"=4/fsdp\"=7/ %s > %t.7.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.7.mlir %t.seven
// RUN: sed s/fsdp\"=4/fsdp\"=1/ %s > %t.1.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.1.mlir %t.one
// RUN: sed 's/\[.fsdp.=4\]/["fsdp"=2, "data"=3]/' %s > %t.6.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.6.mlir %t.six

// CHECK-LABEL: fsdp.segment @train
// CHECK: fsdp.input "x" sample_dim 1 shard_of 10 over ["fsdp"] : tensor<6x3xf32>

// A mean is the sum of all ranks over the global count.
// CHECK: %[[M:.*]] = fsdp.mask_padding %[[Z:.*]] dim 1 of 10 over ["fsdp"] fill 0.000000e+00
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum "o b -> o" %[[M]]
// CHECK-NEXT: %[[A:.*]] = fsdp.all_reduce sum %[[S]] over ["fsdp"] : tensor<3xf32>
// CHECK-NEXT: %[[N:.*]] = arith.constant dense<1.000000e+01> : tensor<3xf32>
// CHECK-NEXT: arith.divf %[[A]], %[[N]] : tensor<3xf32>

// Padding must not win a maximum.
// CHECK: %[[MM:.*]] = fsdp.mask_padding %[[Z]] dim 1 of 10 over ["fsdp"] fill -inf
// CHECK-NEXT: %[[X:.*]] = nn.reduce max "o b -> o" %[[MM]]
// CHECK: fsdp.all_reduce max %[[X]] over ["fsdp"] : tensor<3xf32>
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<6x3xf32> unit "u" init <normal, 0.5>
fsdp.param @v : tensor<3xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <adam, lr = 0.01> {
  %x = fsdp.input "x" sample_dim 1 : tensor<6x10xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %w = fsdp.read @w : tensor<6x3xf32>
  %v = fsdp.read @v : tensor<3xf32>
  %z = nn.einsum "ib,io->ob" %x, %w : (tensor<6x10xf32>, tensor<6x3xf32>) -> tensor<3x10xf32>
  %mean = nn.reduce mean "o b -> o" %z : tensor<3x10xf32> -> tensor<3xf32>
  %means = nn.repeat "o -> o b" %mean : tensor<3xf32> -> tensor<3x10xf32>
  %max = nn.reduce max "o b -> o" %z : tensor<3x10xf32> -> tensor<3xf32>
  %scale = arith.mulf %max, %v : tensor<3xf32>
  %scales = nn.repeat "o -> o b" %scale : tensor<3xf32> -> tensor<3x10xf32>
  %c = arith.subf %z, %means : tensor<3x10xf32>
  %n = arith.mulf %c, %scales : tensor<3x10xf32>
  %gram = nn.einsum "ob,pb->op" %n, %c : (tensor<3x10xf32>, tensor<3x10xf32>) -> tensor<3x3xf32>
  %p = nn.einsum "op,pb->ob" %gram, %n : (tensor<3x3xf32>, tensor<3x10xf32>) -> tensor<3x10xf32>
  %t = nn.rearrange "o b -> b o" %p : tensor<3x10xf32> -> tensor<10x3xf32>
  %e = arith.subf %t, %y : tensor<10x3xf32>
  %q = arith.mulf %e, %e : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %q : tensor<10x3xf32> -> tensor<f64>
  %weight = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
