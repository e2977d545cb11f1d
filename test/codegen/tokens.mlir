// Inputs cut from a row of tokens say so, and the size of the vocabulary, in every phase and in the table.
// RUN: fsdp-opt --fsdp-to-local %s | FileCheck %s --check-prefix=LOCAL
// RUN: fsdp-opt --fsdp-to-scheduled %s | fsdp-translate --fsdp-to-cpp | FileCheck %s

// LOCAL: fsdp.input "tokens" sample_dim 0 shard_of 5 over ["fsdp"] {fsdp.tokens = 11 : i64} : tensor<3x4xi32>
// LOCAL: fsdp.input "targets" sample_dim 0 shard_of 5 over ["fsdp"] {fsdp.targets = 11 : i64} : tensor<3x4xi32>

// CHECK: constexpr Input inputs[] =
// CHECK: {.name = "tokens", .sample = {4},
// CHECK: .limit = 11, .source = Source::Tokens
// CHECK: {.name = "targets", .sample = {4},
// CHECK: .limit = 11, .source = Source::Targets

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @table : tensor<11x11xf32> unit "table" init <normal, 0.02>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %t = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<5x4xi32>
  %y = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<5x4xi32>
  %w = fsdp.read @table : tensor<11x11xf32>
  %logits = nn.embedding %w, %t : tensor<11x11xf32>, tensor<5x4xi32> -> tensor<5x4x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %y : tensor<5x4x11xf32>, tensor<5x4xi32> -> tensor<5x4xf32>, tensor<5x4xf32>
  %wide = arith.extf %losses : tensor<5x4xf32> to tensor<5x4xf64>
  %sum = nn.reduce sum "b s ->" %wide : tensor<5x4xf64> -> tensor<f64>
  %n = arith.constant dense<20.0> : tensor<f64>
  fsdp.loss %sum over %n
}
