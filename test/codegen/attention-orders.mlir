// Attention takes its operands where products leave them: strides say where, and nothing is transposed.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cpp | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s
fsdp.mesh @mesh <["fsdp" = 2]>
fsdp.param @qkv : tensor<8x3x2x4xf32> unit "all" init <constant, 0.1>
fsdp.param @bias : tensor<3x2x4xf32> unit "all" init <constant, 0.1>
fsdp.param @one : tensor<8x2x4xf32> unit "all" init <constant, 0.1>

// Queries, keys and values in one buffer, 3 x 2 x 4 numbers a position, where the product with its bias
// leaves them; then in three, with positions outside of heads.
// CHECK-NOT: rearrange
// CHECK: gemm(c, kCompute, "[[QKV:[a-z_]*]]",
// CHECK-NEXT: Gemm{/*m=*/15, /*n=*/24, /*k=*/8
// CHECK: attention(c, kCompute, "attention",
// CHECK-NEXT: AttentionShape{/*batch=*/3, /*heads=*/2, /*groups=*/2, /*queries=*/5, /*keys=*/5, /*width=*/4,
// CHECK-NEXT: /*scale=*/0.5f, /*causal=*/true, /*q=*/{120, 4, 24}, /*k=*/{120, 4, 24}, /*out=*/{40, 4, 8},
// CHECK-NEXT: /*part=*/8}, arena::[[QKV]], arena::attention, arena::attention_1);
// CHECK: gemm(c, kCompute, "[[ONE:[a-z_]*]]",
// CHECK: rope(c, kCompute, "rope",
// CHECK-NEXT: RopeShape{/*blocks=*/3, /*positions=*/5, /*inner=*/2, /*width=*/4, /*theta=*/1e+04,
// CHECK-NEXT: /*inverse=*/false}, arena::[[ONE]], arena::rope);
// CHECK: attention(c, kCompute, "attention 2",
// CHECK: /*scale=*/1.0f, /*causal=*/false, /*q=*/{40, 4, 8}, /*k=*/{40, 4, 8}, /*out=*/{40, 4, 8}},
// CHECK-NEXT: arena::rope, arena::[[ONE]], arena::attention, arena::attention_2, arena::attention_2_1);
// CHECK: attention_grad(c, kCompute, "attention_grad",
// CHECK: arena::attention_grad, arena::attention_grad_1, arena::attention_grad_2);
// One result for the gradients of all three, which the gradient of the weight reads as a matrix.
// CHECK: attention_grad(c, kCompute, "attention_grad 2",
// CHECK: /*part=*/8}, arena::[[QKV]], arena::attention, arena::attention_1, arena::attention_grad_2,
// CHECK-NEXT: arena::[[GRADIENT:[a-z_0-9]*]]);
// CHECK: OperandSum{Gemm{/*m=*/8, /*n=*/24, /*k=*/15, /*batch=*/{1, 1, 1}, /*a=*/{1, 8, {}},
// CHECK-NEXT: /*b=*/{24, 1, {}}, /*c=*/{24, 1, {}}}, /*ofRight=*/true},
// CHECK-NEXT: reads(arena::input_x, arena::[[GRADIENT]]), writes(arena::qkv_grad, arena::bias_grad),
// CHECK-NOT: rearrange

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<6x5x8xf32>
  %w = fsdp.read @qkv : tensor<8x3x2x4xf32>
  %b = fsdp.read @bias : tensor<3x2x4xf32>
  %o = fsdp.read @one : tensor<8x2x4xf32>
  %p = nn.einsum "btd,dnhk->btnhk" %x, %w : (tensor<6x5x8xf32>, tensor<8x3x2x4xf32>) -> tensor<6x5x3x2x4xf32>
  %bs = nn.repeat "n h k -> b t n h k" %b : tensor<3x2x4xf32> -> tensor<6x5x3x2x4xf32>
  %q = arith.addf %p, %bs : tensor<6x5x3x2x4xf32>
  %a, %sums = nn.attention "b t n h d" %q scale 0.5 causal : (tensor<6x5x3x2x4xf32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %v = nn.einsum "btd,dhk->bthk" %x, %o : (tensor<6x5x8xf32>, tensor<8x2x4xf32>) -> tensor<6x5x2x4xf32>
  %r = nn.rope %v dim 1 theta 1.0e+04 : tensor<6x5x2x4xf32>
  %c, %more = nn.attention "b t h d" %r, %v, %a scale 1.0 : (tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>, tensor<6x5x2x4xf32>) -> (tensor<6x5x2x4xf32>, tensor<6x2x5xf32>)
  %cc = arith.mulf %c, %c : tensor<6x5x2x4xf32>
  %sum = nn.reduce sum "b t h d ->" %cc : tensor<6x5x2x4xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
