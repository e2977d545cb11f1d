// The places of queries are an offset of their positions that the host takes from the rank: what `at` says, less where the last query would be at the last key.
// RUN: fsdp-opt %s --fsdp-to-scheduled="context-attention=ring" 2> /dev/null | fsdp-translate --fsdp-to-cpp | FileCheck %s --check-prefixes=BOTH,RING
// RUN: fsdp-opt %s --fsdp-to-scheduled="context-attention=ring" 2> /dev/null | fsdp-translate --fsdp-to-cuda | FileCheck %s --check-prefixes=BOTH,RING
// RUN: fsdp-opt %s --fsdp-to-scheduled="context-attention=gather" 2> /dev/null | fsdp-translate --fsdp-to-cpp | FileCheck %s --check-prefixes=BOTH,GATHER
fsdp.mesh @mesh <["context" = 2]>
fsdp.param @qkv : tensor<8x3x2x4xf32> unit "all" init <constant, 0.1>

// RING: SourceRanks::of<1, 0>(), arena::
// RING: attention(c, kCompute, "attention",
// RING: /*part=*/0, /*window=*/2}
// RING: attention(c, kCompute, "attention 2",
// RING: /*part=*/0, /*window=*/2, /*softcap=*/0.0f, /*bias=*/0,
// RING-NEXT: /*offset=*/ofRank({-3, 3}, c.coordinate(kAxisContext))},
// GATHER: attention(c, kCompute, "attention",
// GATHER: /*queries=*/3, /*keys=*/6,
// GATHER: /*offset=*/ofRank({-3, 0}, c.coordinate(kAxisContext))},
// BOTH: attention_grad(c, kCompute, "attention_grad{{.*}}",
// BOTH: ofRank({-3, {{[03]}}}, c.coordinate(kAxisContext))},

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<2x6x8xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"context"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<2x6x8xf32>
  %w = fsdp.read @qkv : tensor<8x3x2x4xf32>
  %p = nn.einsum "btd,dnhk->btnhk" %x, %w : (tensor<2x6x8xf32>, tensor<8x3x2x4xf32>) -> tensor<2x6x3x2x4xf32>
  %a, %sums = nn.attention "b t n h d" %p scale 0.5 causal window 2 : (tensor<2x6x3x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
  %sum = nn.reduce sum "b t h d ->" %a : tensor<2x6x2x4xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
