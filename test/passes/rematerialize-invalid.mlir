// RUN: fsdp-opt %s --fsdp-rematerialize --verify-diagnostics
// RUN: bash -c 'for policy in every:0 every: every:-1 every:2x some auto; do fsdp-opt %s --fsdp-rematerialize=policy=$policy 2>&1; done; true' | FileCheck %s

// CHECK-COUNT-5: expected none, full, selective or every:K with K an integer from 1 to 9223372036854775807
// CHECK: --remat got 'auto', expected none, full, selective or every:K with K an integer from 1 to

// A model of two units has nothing between the first and the last.
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
// expected-warning @below {{nothing is rematerialized: the step 'train' has no unit between the first and the last, which are kept; mark regions with 'fsdp.checkpoint'}}
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %a = fsdp.read @a : tensor<4x4xf32>
  %p = nn.einsum "bi,io->bo" %x, %a : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %b = fsdp.read @b : tensor<4x4xf32>
  %y = nn.einsum "bi,io->bo" %p, %b : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
