// A stream whose positions stay whole although they are marked: a remark says who takes it how. Steps that only evaluate say nothing.
// RUN: fsdp-opt %s --split-input-file --fsdp-shard-parameters --fsdp-propagate -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=--sequence-parallel
// RUN: llama --layers=1 --width=64 --heads=4 --ffn=48 --context=16 --vocab=61 --batch=4 --mesh=tensor=2 --sequence-parallel=on "--shard=*norm*:tensor" --emit=local -o /dev/null 2>&1 | FileCheck %s --check-prefix=LLAMA
// RUN: llama --layers=1 --width=64 --heads=4 --ffn=48 --context=16 --vocab=61 --batch=4 --mesh=tensor=2 --sequence-parallel=on "--shard=*embed*:_,tensor" --emit=local -o /dev/null 2>&1 | FileCheck %s --check-prefix=SPLIT --allow-empty
// REQUIRES: llama
// LLAMA-COUNT-1: remark: --sequence-parallel splits no positions: 'layers.0.input_layernorm.rmsNorm' takes 'embed_tokens.sequenceParallel' with dimension 2 split over 'tensor'; leave that split out of --shard and the model, or give --sequence-parallel=off
// LLAMA-NOT: splits no positions
// SPLIT-NOT: splits no positions

// The weight of a norm is split: that comes before the positions.
// CHECK: remark: --sequence-parallel splits no positions: 'arith.mulf' takes 'fsdp.constraint' with dimension 2 split over 'tensor'; leave that split out of --shard and the model, or give --sequence-parallel=off
fsdp.mesh @mesh <["tensor"=2]>
fsdp.param @scale : tensor<4xf32> unit "u" init <normal, 0.5> split [["tensor"]]
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %scale = fsdp.read @scale : tensor<4xf32>
  %rows = nn.repeat "o -> b t o" %scale {b = 8, t = 6} : tensor<4xf32> -> tensor<8x6x4xf32>
  %y = arith.mulf %x, %rows : tensor<8x6x4xf32>
  %sum = nn.reduce sum "b t o ->" %y : tensor<8x6x4xf32> -> tensor<f64>
}

// -----

// Nothing but a product whose columns are split takes the value.
// CHECK: remark: --sequence-parallel splits no positions: 'nn.einsum' takes 'fsdp.constraint' with all of them; mark the value that is added to, or give --sequence-parallel=off
fsdp.mesh @mesh <["tensor"=2]>
fsdp.param @w : tensor<4x8xf32> unit "u" init <normal, 0.5> split [[], ["tensor"]]
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %w = fsdp.read @w : tensor<4x8xf32>
  %h = nn.einsum "bti,io->bto" %x, %w : (tensor<8x6x4xf32>, tensor<4x8xf32>) -> tensor<8x6x8xf32>
  %sum = nn.reduce sum "b t o ->" %h : tensor<8x6x8xf32> -> tensor<f64>
}

// -----

fsdp.mesh @mesh <["tensor"=2]>
fsdp.param @w : tensor<4x8xf32> unit "u" init <normal, 0.5> split [[], ["tensor"]]
fsdp.step @eval evaluate {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %w = fsdp.read @w : tensor<4x8xf32>
  %h = nn.einsum "bti,io->bto" %x, %w : (tensor<8x6x4xf32>, tensor<4x8xf32>) -> tensor<8x6x8xf32>
}

// -----

// It is resharded for its samples, and keeps its positions split.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<4x4xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  %x = fsdp.constraint %in <@mesh, [{}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %h = nn.einsum "bti,io->bto" %in, %w : (tensor<8x6x4xf32>, tensor<4x4xf32>) -> tensor<8x6x4xf32>
  %z = fsdp.constraint %h <@mesh, [{"fsdp"}, {"tensor"}, {}]> : tensor<8x6x4xf32>
  %y = arith.mulf %z, %x : tensor<8x6x4xf32>
  %c = fsdp.constraint %y <@mesh, [{"fsdp"}, {"tensor"}, {}]> : tensor<8x6x4xf32>
  %sum = nn.reduce sum "b t o ->" %c : tensor<8x6x4xf32> -> tensor<f64>
}

// -----

// One of its two takers takes it split: that is no idle mark.
fsdp.mesh @mesh <["tensor"=2]>
fsdp.param @w : tensor<4x8xf32> unit "u" init <normal, 0.5> split [[], ["tensor"]]
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %w = fsdp.read @w : tensor<4x8xf32>
  %y = arith.mulf %x, %x : tensor<8x6x4xf32>
  %h = nn.einsum "bti,io->bto" %x, %w : (tensor<8x6x4xf32>, tensor<4x8xf32>) -> tensor<8x6x8xf32>
  %one = nn.reduce sum "b t o ->" %h : tensor<8x6x8xf32> -> tensor<f64>
  %other = nn.reduce sum "b t o ->" %y : tensor<8x6x4xf32> -> tensor<f64>
}
