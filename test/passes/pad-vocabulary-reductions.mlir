// What reduces over a padded vocabulary does not see the padding: maxima, means and sums of what is not zero there.
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.four
// RUN: sed 's/"tensor"=2/"tensor"=1/' %s > %t.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.mlir %t.whole
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.mlir %t.chunks loss-chunks=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.mlir %t.wide vocabulary-multiple=32 most-vocabulary-padding=300
// RUN: sed 's/"tensor"=2/"tensor"=3/; s/"fsdp"=2/"fsdp"=1/' %s > %t.parts.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.parts.mlir %t.three accumulate=3
// RUN: fsdp-opt %t.mlir --fsdp-to-global --fsdp-partition | FileCheck %s

// CHECK: fsdp.param @embed : tensor<101x8xf32> {{.*}} padded [104, 8]
// CHECK: fsdp.param @head : tensor<8x101xf32> {{.*}} padded [8, 104]
// CHECK-LABEL: fsdp.segment @train
// CHECK-DAG: fsdp.mask_padding {{.*}} dim 2 of 101 over [] fill -inf : tensor<3x3x104xf32>
// CHECK-DAG: fsdp.mask_padding {{.*}} dim 2 of 101 over [] fill 0.000000e+00 : tensor<3x3x104xf32>
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @embed : tensor<101x8xf32> unit "embed" init <normal, 1.0> split [["tensor"], []]
fsdp.param @head : tensor<8x101xf32> unit "head" init <normal, 1.0> split [[], ["tensor"]]
fsdp.step @train train optimizer <adamw, lr = 0.1, weight_decay = 0.1, clip = 0.5> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<5x3xi32>
  %labels = fsdp.input "labels" sample_dim 0 : tensor<5x3xi32>
  %table = fsdp.read @embed : tensor<101x8xf32>
  %head = fsdp.read @head : tensor<8x101xf32>
  %x = nn.embedding %table, %ids : tensor<101x8xf32>, tensor<5x3xi32> -> tensor<5x3x8xf32>
  %t = math.tanh %x : tensor<5x3x8xf32>
  %y = nn.einsum "btd,dv->btv" %t, %head : (tensor<5x3x8xf32>, tensor<8x101xf32>) -> tensor<5x3x101xf32>
  %one = arith.constant dense<1.0> : tensor<5x3x101xf32>
  %logits = arith.addf %y, %one : tensor<5x3x101xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels
      : tensor<5x3x101xf32>, tensor<5x3xi32> -> tensor<5x3xf32>, tensor<5x3xf32>
  %neg = arith.negf %logits : tensor<5x3x101xf32>
  %top = nn.reduce max "b t v -> b t" %neg : tensor<5x3x101xf32> -> tensor<5x3xf32>
  %e = math.exp %logits : tensor<5x3x101xf32>
  %mean = nn.reduce mean "b t v -> b t" %e : tensor<5x3x101xf32> -> tensor<5x3xf32>
  %a = arith.addf %loss, %mean : tensor<5x3xf32>
  %sum = nn.reduce sum "b t ->" %a : tensor<5x3xf32> -> tensor<f64>
  %msum = nn.reduce sum "b t ->" %top : tensor<5x3xf32> -> tensor<f64>
  %count = arith.constant dense<15.0> : tensor<f64>
  fsdp.loss %sum over %count
  fsdp.metric "top" %msum over %count
}
