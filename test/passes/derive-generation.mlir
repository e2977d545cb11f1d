// RUN: fsdp-opt %s --fsdp-derive-evaluation --fsdp-derive-generation=chunk=3 --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-global=generate=true --split-input-file | FileCheck %s --check-prefix=PIPELINE

// One sample, some of its positions. Rows of a table of positions are looked up; keys and values are kept over the whole context.
// The context is 8, so that a prefill has 2 tokens, not 3.
// CHECK-LABEL: module
// CHECK-DAG: fsdp.carried @decode.logits : tensor<1x1x5xf32>
// CHECK-DAG: fsdp.carried @keys.0 : tensor<1x1x8x4xf32> zeroed
// CHECK-DAG: fsdp.carried @values.0 : tensor<1x1x8x4xf32> zeroed
// CHECK: fsdp.step @prefill prefill {
// CHECK: fsdp.input "prefill.tokens" sample_dim 0 {fsdp.generated} : tensor<1x2xi32>
// CHECK: %[[AT:.*]] = fsdp.input "prefill.positions" sample_dim 0 {fsdp.generated} : tensor<1x2xi32>
// CHECK: nn.write_rows %{{.*}}, %{{.*}}, %[[AT]] dim 2 : tensor<1x1x8x4xf32>, tensor<1x1x2x4xf32>, tensor<1x2xi32>
// CHECK: fsdp.carry_store %{{.*}}, @keys.0
// CHECK: fsdp.carry_store %{{.*}}, @values.0
// What follows keys and values of the last attention is left out.
// CHECK-NOT: nn.cached_attention
// CHECK: fsdp.step @decode decode {
// CHECK: %[[IDS:.*]] = fsdp.input "decode.tokens"
// CHECK: %[[AT:.*]] = fsdp.input "decode.positions"
// CHECK: %[[X:.*]] = nn.embedding %{{.*}}, %[[IDS]] : tensor<5x4xf32>, tensor<1x1xi32> -> tensor<1x1x4xf32>
// CHECK: %[[TABLE:.*]] = fsdp.read @wpe
// CHECK: %[[ROWS:.*]] = nn.embedding %[[TABLE]], %[[AT]] : tensor<8x4xf32>, tensor<1x1xi32> -> tensor<1x1x4xf32>
// CHECK: %[[ROW:.*]] = nn.rearrange "1 d0 d1 -> d0 d1" %[[ROWS]]
// CHECK: nn.repeat "s d -> b s d" %[[ROW]]
// A constant of every position.
// CHECK: arith.constant dense<2.000000e+00> : tensor<1x1x4xf32>
// CHECK: nn.rope %{{.*}} at %[[AT]] : tensor<1x1xi32> dim 1 theta 1.000000e+04
// CHECK: %[[KEYS:.*]] = nn.write_rows
// CHECK: %[[VALUES:.*]] = nn.write_rows
// CHECK: nn.cached_attention "b t h d" %{{.*}}, %[[KEYS]], %[[VALUES]], %[[AT]] scale 5.000000e-01 window 3 : tensor<1x1x1x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1xi32>
// CHECK: %[[SCORES:.*]] = nn.einsum "bsd,vd->bsv"
// CHECK: fsdp.carry_store %[[SCORES]], @decode.logits : tensor<1x1x5xf32>

// PIPELINE-LABEL: module
// PIPELINE: fsdp.step @train train
// PIPELINE: fsdp.step @evaluate evaluate
// PIPELINE: fsdp.step @prefill prefill
// PIPELINE: fsdp.step @decode decode
module {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.param @wpe : tensor<8x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @train train optimizer <sgd, lr = 0.1> {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %wpe = fsdp.read @wpe : tensor<8x4xf32>
    %p = nn.repeat "s d -> b s d" %wpe : tensor<8x4xf32> -> tensor<6x8x4xf32>
    %sum = arith.addf %x, %p : tensor<6x8x4xf32>
    %two = arith.constant dense<2.0> : tensor<6x8x4xf32>
    %y = arith.mulf %sum, %two : tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> b s h d" %y : tensor<6x8x4xf32> -> tensor<6x8x1x4xf32>
    %k = nn.rope %q dim 1 theta 1.0e+04 : tensor<6x8x1x4xf32>
    %out, %lse = nn.attention "b t h d" %q, %k, %q scale 0.5 causal window 3
        : (tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>) -> (tensor<6x8x1x4xf32>, tensor<6x1x8xf32>)
    %h = nn.rearrange "b s h d -> b s (h d)" %out : tensor<6x8x1x4xf32> -> tensor<6x8x4xf32>
    %head = fsdp.read @wte : tensor<5x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %h, %head : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

// A text is one document: positions in documents are those of the text, in tables and for rotations.
// CHECK-LABEL: module
// CHECK: fsdp.step @decode decode {
// CHECK: %[[AT:.*]] = fsdp.input "decode.positions"
// CHECK-NOT: nn.positions_since
// CHECK: nn.embedding %{{.*}}, %[[AT]] : tensor<8x4xf32>, tensor<1x1xi32> -> tensor<1x1x4xf32>
// CHECK: nn.rope %{{.*}} at %[[AT]] : tensor<1x1xi32> dim 1
// CHECK-NOT: nn.positions_since
// CHECK: fsdp.carry_store %{{.*}}, @decode.logits
module {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.param @wpe : tensor<8x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @train train optimizer <sgd, lr = 0.1> {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %at = nn.positions_since [3] documents in %tokens : tensor<6x8xi32> -> tensor<6x8xi32>
    %wpe = fsdp.read @wpe : tensor<8x4xf32>
    %p = nn.embedding %wpe, %at : tensor<8x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %y = arith.addf %x, %p : tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> b s h d" %y : tensor<6x8x4xf32> -> tensor<6x8x1x4xf32>
    %k = nn.rope %q at %at : tensor<6x8xi32> dim 1 theta 1.0e+04 : tensor<6x8x1x4xf32>
    %out, %lse = nn.attention "b t h d" %q, %k, %q, %at scale 0.5 causal documents
        : (tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8xi32>) -> (tensor<6x8x1x4xf32>, tensor<6x1x8xf32>)
    %h = nn.rearrange "b s h d -> b s (h d)" %out : tensor<6x8x1x4xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %h, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}
