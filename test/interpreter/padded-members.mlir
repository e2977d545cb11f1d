// A table that is padded, behind another parameter of its unit: its padding is zero from the first step on, wherever it stands in the storage.
// RUN: %{python} %S/../passes/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t vocabulary-multiple=4 most-vocabulary-padding=100
// RUN: %{python} %S/../passes/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.copies strategy=zero1 vocabulary-multiple=4 most-vocabulary-padding=100
// RUN: fsdp-opt %s --fsdp-to-local="vocabulary-multiple=4 most-vocabulary-padding=100" | FileCheck %s
// CHECK: members [#fsdp.member<@first at 0>, #fsdp.member<@table at 4>, #fsdp.member<@mixed at 24>]
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @first : tensor<4xf32> unit "all" init <uniform, 0.6>
fsdp.param @table : tensor<3x5xf32> unit "all" init <uniform, 0.6>
fsdp.param @mixed : tensor<5x5xf32> unit "all" init <normal, 0.6>
fsdp.step @train train optimizer <adamw, lr = 0.05, weight_decay = 0.1> {
  %first = fsdp.read @first : tensor<4xf32>
  %a = nn.reduce sum "g ->" %first : tensor<4xf32> -> tensor<f64>
  %ids = fsdp.input "ids" sample_dim 0 : tensor<11xi32>
  %table = fsdp.read @table : tensor<3x5xf32>
  %rows = nn.repeat "h i -> h i j" %table : tensor<3x5xf32> -> tensor<3x5x5xf32>
  %mixed = fsdp.read @mixed : tensor<5x5xf32>
  %weights = nn.repeat "j i -> h i j" %mixed : tensor<5x5xf32> -> tensor<3x5x5xf32>
  // The gradient of `mixed` sums over the rows of the table, padding included.
  %products = arith.mulf %rows, %weights : tensor<3x5x5xf32>
  %sums = nn.reduce sum "h i j -> h i" %products : tensor<3x5x5xf32> -> tensor<3x5xf32>
  %x = nn.embedding %sums, %ids : tensor<3x5xf32>, tensor<11xi32> -> tensor<11x5xf32>
  %b = nn.reduce sum "b i ->" %x : tensor<11x5xf32> -> tensor<f64>
  %sum = arith.addf %a, %b : tensor<f64>
  %count = arith.constant dense<40.0> : tensor<f64>
  fsdp.loss %sum over %count
}
