// A parameter pads 6 positions to 16: of two ranks each has 8 queries, more than there are keys, which end with the columns of the bias.
// RUN: fsdp-opt %s --fsdp-to-local=context-attention=gather 2>&1 | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t context-attention=gather
// RUN: sed 's/causal bias/causal window 3 bias/' %s > %t.window.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.window.mlir %t.window context-attention=gather
// CHECK: nn.attention {{.*}} causal bias at [0, 8] over ["context"]{{.*}} : (tensor<8x1x8x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>, tensor<1x8x6xf32>)
// CHECK: nn.attention_grad {{.*}} causal bias at [0, 8] over ["context"]
// CHECK: nn.attention_bias_grad {{.*}} causal at [0, 8] over ["context"]
fsdp.mesh @mesh <["context"=2]>
fsdp.param @rows : tensor<1x6x2xf32> unit "u" init <normal, 0.5> placement <flat over ["context"], gather = f32, reduce = f32, reshard = always> padded [1, 16, 2]
fsdp.param @bias : tensor<1x6x6xf32> unit "u" init <normal, 0.5> placement <flat over ["context"], gather = f32, reduce = f32, reshard = always> padded [1, 16, 6]
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x1xf32>
  %rows = fsdp.read @rows : tensor<1x6x2xf32>
  %bias = fsdp.read @bias : tensor<1x6x6xf32>
  %each = nn.einsum "bo,otd->botd" %x, %rows : (tensor<8x1xf32>, tensor<1x6x2xf32>) -> tensor<8x1x6x2xf32>
  %q = fsdp.constraint %each <@mesh, [{?}, {?}, {"context"}, {?}]> {sequence_parallel} : tensor<8x1x6x2xf32>
  %a, %l = nn.attention %q, %q, %q, %bias scale 0.5 causal bias : (tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>, tensor<1x6x6xf32>) -> (tensor<8x1x6x2xf32>, tensor<8x1x6xf32>)
  %t = math.tanh %a : tensor<8x1x6x2xf32>
  %sum = nn.reduce sum "b h t d ->" %t : tensor<8x1x6x2xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
