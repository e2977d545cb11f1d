// What an attention with a bias is told, and what computes its gradient: nothing where nobody needs it.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cpp | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s
fsdp.mesh @mesh <["fsdp" = 2]>
fsdp.param @qkv : tensor<8x3x2x4xf32> unit "all" init <constant, 0.1>
fsdp.param @bias : tensor<2x5x5xf32> unit "all" init <constant, 0.1>
fsdp.param @one : tensor<1x5x5xf32> unit "all" init <constant, 0.1>

// CHECK: attention(c, kCompute, "attention",
// CHECK: /*causal=*/true, /*q=*/{120, 4, 24}, /*k=*/{120, 4, 24}, /*out=*/{40, 4, 8},
// CHECK-NEXT: /*part=*/8, /*window=*/0, /*softcap=*/0.0f, /*bias=*/25}, arena::einsum,
// CHECK-NEXT: withBias(arena::bias), inDocuments(arena::input_ids), arena::attention, arena::attention_1);
// CHECK: attention(c, kCompute, "attention 2",
// CHECK: /*out=*/{40, 4, 8}},
// CHECK-NEXT: arena::attention, arena::attention, arena::attention, withBias(arena::one),
// CHECK: attention(c, kCompute, "attention 3",
// CHECK: attention_grad(c, kCompute, "attention_grad",
// CHECK-NOT: attention_bias_grad
// CHECK: attention_grad(c, kCompute, "attention_grad 2",
// CHECK: attention_bias_grad(c, kCompute, "attention_bias_grad",
// CHECK: arena::one_grad);
// CHECK: attention_grad(c, kCompute, "attention_grad 3",
// CHECK: attention_bias_grad(c, kCompute, "attention_bias_grad 2",
// CHECK: arena::bias_grad);
// CHECK-NOT: attention_bias_grad(

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<6x5x8xf32>
  %ids = fsdp.input "ids" sample_dim 0 : tensor<6x5xi32>
  %w = fsdp.read @qkv : tensor<8x3x2x4xf32>
  %bias = fsdp.read @bias : tensor<2x5x5xf32>
  %one = fsdp.read @one : tensor<1x5x5xf32>
  %fixed = arith.constant dense<0.25> : tensor<1x5x5xf32>
  %p = nn.einsum "btd,dnhk->btnhk" %x, %w : (tensor<6x5x8xf32>, tensor<8x3x2x4xf32>) -> tensor<6x5x3x2x4xf32>
  %a, %sums = nn.attention "b t n h d" %p, %bias, %ids scale 0.5 causal bias documents : (tensor<6x5x3x2x4xf32>, tensor<2x5x5xf32>, tensor<6x5xi32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %c, %more = nn.attention "b t h d" %a, %a, %a, %one scale 1.0 causal bias : (tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<1x5x5xf32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %d, %most = nn.attention "b t h d" %c, %c, %c, %fixed scale 1.0 bias : (tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<1x5x5xf32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %cc = arith.mulf %d, %d : tensor<6x5x2x4xf32>
  %sum = nn.reduce sum "b t h d ->" %cc : tensor<6x5x2x4xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
