// Attention of a sequence that `context` does not split, with fewer heads than ranks: each rank computes it whole. No remark says how it is split.
// RUN: fsdp-opt %s --fsdp-to-local 2>&1 | FileCheck %s --implicit-check-not="attention over"
// RUN: fsdp-opt %s --fsdp-to-local=context-attention=ring 2>&1 | FileCheck %s --implicit-check-not="attention over"
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// With as many heads as ranks these are split.
// RUN: sed 's/8x3x5x2/8x4x5x2/g; s/8x3x5xf32/8x4x5xf32/' %s > %t.heads.mlir
// RUN: fsdp-opt %t.heads.mlir --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.heads.mlir %t.heads
// CHECK-LABEL: fsdp.segment @train
// CHECK: nn.attention {{.*}} : (tensor<8x3x5x2xf32>
// HEADS: remark: attention over context=4: all-to-all, from positions to heads and back (1 of 4 heads on each rank)
// HEADS: nn.attention {{.*}} : (tensor<8x1x5x2xf32>
fsdp.mesh @mesh <["context"=4]>
fsdp.param @table : tensor<11x8xf32> unit "u" init <normal, 0.5>
fsdp.param @scale : tensor<2xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<8x8xi32>
  %to = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<8x8xi32>
  %frames = fsdp.input "frames" sample_dim 0 : tensor<8x3x5x2xf32>
  %scale = fsdp.read @scale : tensor<2xf32>
  %scaled = nn.einsum "bhtd,d->bhtd" %frames, %scale : (tensor<8x3x5x2xf32>, tensor<2xf32>) -> tensor<8x3x5x2xf32>
  %seen, %logs = nn.attention %scaled, %scaled, %scaled scale 0.5 : (tensor<8x3x5x2xf32>, tensor<8x3x5x2xf32>, tensor<8x3x5x2xf32>) -> (tensor<8x3x5x2xf32>, tensor<8x3x5xf32>)
  %about = nn.reduce sum "b h t d ->" %seen : tensor<8x3x5x2xf32> -> tensor<f64>
  %table = fsdp.read @table : tensor<11x8xf32>
  %rows = nn.embedding %table, %ids : tensor<11x8xf32>, tensor<8x8xi32> -> tensor<8x8x8xf32>
  %logits = nn.einsum "btd,vd->btv" %rows, %table : (tensor<8x8x8xf32>, tensor<11x8xf32>) -> tensor<8x8x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %to : tensor<8x8x11xf32>, tensor<8x8xi32> -> tensor<8x8xf32>, tensor<8x8xf32>
  %total = nn.reduce sum "b t ->" %losses : tensor<8x8xf32> -> tensor<f64>
  %both = arith.addf %total, %about : tensor<f64>
  %weight = arith.constant dense<64.0> : tensor<f64>
  fsdp.loss %both over %weight
}
