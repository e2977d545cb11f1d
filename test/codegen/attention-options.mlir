// What an attention is told of a window, a cap of scores and documents; a window of more keys than there are is one of all.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cpp | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s
fsdp.mesh @mesh <["fsdp" = 2]>
fsdp.param @qkv : tensor<8x3x2x4xf32> unit "all" init <constant, 0.1>

// CHECK: attention(c, kCompute, "attention",
// CHECK: /*causal=*/true, /*q=*/{120, 4, 24}, /*k=*/{120, 4, 24}, /*out=*/{40, 4, 8},
// CHECK-NEXT: /*part=*/8, /*window=*/2}, arena::[[QKV:[a-z_]*]], inDocuments(arena::input_ids), arena::[[OUT:[a-z_0-9]*]],
// CHECK-NEXT: arena::[[SUMS:[a-z_0-9]*]]);
// CHECK: attention(c, kCompute, "attention 2",
// CHECK: /*part=*/0, /*window=*/5, /*softcap=*/1.5f},
// CHECK: attention(c, kCompute, "attention 3",
// CHECK: /*part=*/0, /*window=*/0, /*softcap=*/2.0f},
// CHECK: attention_grad(c, kCompute, "attention_grad 3",
// CHECK: /*part=*/8, /*window=*/2}, arena::[[QKV]], inDocuments(arena::input_ids), arena::[[OUT]],
// CHECK-NEXT: arena::[[SUMS]],

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<6x5x8xf32>
  %ids = fsdp.input "ids" sample_dim 0 : tensor<6x5xi32>
  %w = fsdp.read @qkv : tensor<8x3x2x4xf32>
  %p = nn.einsum "btd,dnhk->btnhk" %x, %w : (tensor<6x5x8xf32>, tensor<8x3x2x4xf32>) -> tensor<6x5x3x2x4xf32>
  %a, %sums = nn.attention "b t n h d" %p, %ids scale 0.5 causal window 2 documents : (tensor<6x5x3x2x4xf32>, tensor<6x5xi32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %c, %more = nn.attention "b t h d" %a, %a, %a scale 1.0 causal window 9 softcap 1.5 : (tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %d, %most = nn.attention "b t h d" %c, %c, %c scale 1.0 softcap 2.0 : (tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %cc = arith.mulf %d, %d : tensor<6x5x2x4xf32>
  %sum = nn.reduce sum "b t h d ->" %cc : tensor<6x5x2x4xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
