// Positions in zigzag order, so that causal attention by gather or ring computes as much on each rank: rank r of c has the chunks r and 2 c - 1 - r. The numbers are
// those of one device, and a ring has as many permutes as one of contiguous positions.
// RUN: fsdp-opt %s --fsdp-context-parallel 2>&1 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=RING --implicit-check-not=warning --implicit-check-not=all_to_all
// RUN: fsdp-opt %s --fsdp-to-local="context-attention=gather" 2>&1 | FileCheck %s --check-prefix=GATHER --implicit-check-not=warning --implicit-check-not=collective_permute
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t context-attention=gather accumulate=2 remat=full
// Three ranks, of which each sends keys and values on twice: 4 permutes forward, 8 backward.
// RUN: sed 's/"context"=2/"context"=3/' %s > %t.three.mlir
// RUN: fsdp-opt %t.three.mlir --fsdp-to-local 2> /dev/null | FileCheck %s --check-prefix=THREE --implicit-check-not=collective_permute
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.three.mlir %t.three remat=full
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.three.mlir %t.three context-attention=gather
// A window that some ranks still have less of: pairs of chunks that no query reaches are not computed.
// RUN: sed 's/causal/causal window 7/' %t.three.mlir > %t.window.mlir
// RUN: fsdp-opt %t.window.mlir --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.window.mlir %t.window context-order=zigzag accumulate=2
// RUN: sed 's/window 7/window 2/' %t.window.mlir > %t.short.mlir
// RUN: fsdp-opt %t.short.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.short.mlir %t.short context-order=zigzag
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.short.mlir %t.short context-order=zigzag context-attention=gather
// Ids of documents and positions in them are computed from whole tokens, in their order, and permuted then; no integers are exchanged but the ids that attention gathers.
// RUN: sed 's/%%kr, %%v scale 0.5 causal/%%kr, %%v, %%docs scale 0.5 causal documents/; s/: (tensor<8x3x12x2xf32>, tensor<8x1x12x2xf32>, tensor<8x1x12x2xf32>)/: (tensor<8x3x12x2xf32>, tensor<8x1x12x2xf32>, tensor<8x1x12x2xf32>, tensor<8x12xi32>)/; s/^  %%to = .*/&\n  %%since = nn.positions_since [1] documents in %%ids : tensor<8x12xi32> -> tensor<8x12xi32>\n  %%ends = arith.constant dense<0> : tensor<8x12xi32>\n  %%starts = arith.cmpi eq, %%since, %%ends : tensor<8x12xi32>\n  %%flags = arith.uitofp %%starts : tensor<8x12xi1> to tensor<8x12xf32>\n  %%sums = nn.scan_sum "b t" along "t" %%flags : tensor<8x12xf32>\n  %%docs = arith.fptosi %%sums : tensor<8x12xf32> to tensor<8x12xi32>/; s/nn.rope %%q dim/nn.rope %%q at %%since : tensor<8x12xi32> dim/' %s > %t.ids.mlir
// RUN: fsdp-opt %t.ids.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=IDS
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.ids.mlir %t.ids
// They are those of contiguous positions, after an update too.
// RUN: bash -c 'for o in contiguous zigzag; do fsdp-opt %t.ids.mlir --fsdp-to-global=context-order=$o -o %t.order.mlir 2> /dev/null; fsdp-run %t.order.mlir --inputs=%t.ids/inputs.safetensors --outputs=%t.order --steps=2 --numerics=exact --seed=5; done' | FileCheck %s --check-prefix=SAME
// Positions that ranks do not divide: the last part is padding, which has no weight and is not a key.
// RUN: sed 's/13x8/14x8/g; s/x12/x13/g; s/tensor<12/tensor<13/g; s/"context"=2/"context"=3/' %s > %t.uneven.mlir
// RUN: fsdp-opt %t.uneven.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=PADDED
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.uneven.mlir %t.uneven context-attention=ring accumulate=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.uneven.mlir %t.uneven context-attention=gather
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.uneven.mlir %t.uneven context-attention=all-to-all
// RUN: sed 's/ causal//' %t.uneven.mlir > %t.seen.mlir
// RUN: not fsdp-opt %t.seen.mlir --fsdp-context-parallel=attention=ring 2>&1 | FileCheck %s --check-prefix=SEEN
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.seen.mlir %t.seen context-attention=gather
// RUN: sed 's/13x8/14x8/g; s/x12/x13/g; s/tensor<12/tensor<13/g; s/"context"=2/"context"=3/' %t.ids.mlir > %t.parts.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.parts.mlir %t.parts context-attention=gather
// RUN: sed 's/ causal//' %t.parts.mlir > %t.unknown.mlir
// RUN: not fsdp-opt %t.unknown.mlir --fsdp-context-parallel=attention=gather 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// Chosen order, and what keeps positions contiguous.
// RUN: fsdp-opt %s --fsdp-context-parallel=order=contiguous 2>&1 | FileCheck %s --check-prefix=CONTIGUOUS
// RUN: sed 's/ causal//' %s > %t.all.mlir
// RUN: fsdp-opt %t.all.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not fsdp-opt %t.all.mlir --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=NONCAUSAL
// RUN: sed 's/"context"=2/"context"=4/' %s > %t.four.mlir
// RUN: fsdp-opt %t.four.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: not fsdp-opt %t.four.mlir --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: sed 's/%%rows, %%places/%%rows, %%dropped/; s/^  %%x = /  %%dropped = fsdp.dropout %%places rate 1.0e-01 name "drop" : tensor<8x12x8xf32>\n&/' %s > %t.drop.mlir
// RUN: fsdp-opt %t.drop.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=DROP
// RUN: not fsdp-opt %t.drop.mlir --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=DROPPED
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.drop.mlir %t.drop
// RUN: sed 's/"btd,dhk->bhtk" %%x, %%wv/"btd,dhk->bhtk" %%counted, %%wv/; s/^  %%wq = /  %%counted = nn.scan_sum "b t d" along "t" %%x : tensor<8x12x8xf32>\n&/' %s > %t.scan.mlir
// RUN: not fsdp-opt %t.scan.mlir --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=SCAN
// Rows with positions that are looked up by number: a table that is computed, and added too.
// RUN: sed 's/"btd,dhk->bhtk" %%x, %%wv/"btd,dhk->bhtk" %%found, %%wv/; s/^  %%wq = /  %%mean = nn.reduce mean "b t d -> t d" %%x : tensor<8x12x8xf32> -> tensor<12x8xf32>\n  %%found = nn.embedding %%mean, %%ids : tensor<12x8xf32>, tensor<8x12xi32> -> tensor<8x12x8xf32>\n&/' %s > %t.table.mlir
// RUN: not fsdp-opt %t.table.mlir --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.table.mlir %t.table
// RUN: not fsdp-opt %s --fsdp-context-parallel="attention=all-to-all order=zigzag" 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: not fsdp-opt %s --fsdp-context-parallel=order=sorted 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: fsdp-opt %s --fsdp-to-global="context-order=contiguous" 2> /dev/null | FileCheck %s --check-prefix=OPTION
// On another mesh than that whose order it is.
// RUN: fsdp-opt %s --fsdp-context-parallel 2> /dev/null | sed 's/"fsdp"=2, "context"=2/"fsdp"=2, "context"=3/' | not fsdp-opt --pass-pipeline='builtin.module(fsdp-shard-parameters,fsdp.step(fsdp-differentiate,fsdp-apply-optimizer),fsdp-propagate,fsdp-partition)' 2>&1 | FileCheck %s --check-prefix=MESH

// CHECK: remark: attention over context=2: ring, keys and values from rank to rank (6 of 12 queries on each rank); positions in zigzag order, the busiest rank computing 1.00 times the mean of scores (1.46 in contiguous order)
// CHECK: fsdp.context_order = "zigzag"
// The numbers of positions of rotations, of tokens and of targets, and of the lookup that a table becomes.
// CHECK: %[[COUNTED:.*]] = arith.fptosi %{{.*}} : tensor<12xf32> to tensor<12xi32>
// CHECK: %[[PARTS:.*]] = nn.rearrange "(n l) -> n l" %[[COUNTED]] : tensor<12xi32> -> tensor<4x3xi32>
// CHECK: %[[C0:.*]] = nn.slice %[[PARTS]] dim 0 start 0
// CHECK: %[[C3:.*]] = nn.slice %[[PARTS]] dim 0 start 3
// CHECK: %[[C1:.*]] = nn.slice %[[PARTS]] dim 0 start 1
// CHECK: %[[C2:.*]] = nn.slice %[[PARTS]] dim 0 start 2
// CHECK: nn.concat %[[C0]], %[[C3]], %[[C1]], %[[C2]] dim 0
// CHECK: %[[NUMBERS:.*]] = nn.repeat "t -> b t"
// CHECK: %[[TOKENS:.*]] = fsdp.input "tokens"
// CHECK: nn.rearrange "d0 (n l) -> n d0 l" %[[TOKENS]]
// CHECK: %[[PERMUTED:.*]] = nn.rearrange "n d0 l -> d0 (n l)"
// CHECK: fsdp.constraint %[[PERMUTED]] <@mesh, [{?}, {"context"}]> : tensor<8x12xi32>
// CHECK: fsdp.input "targets"
// CHECK: nn.rearrange "d0 (n l) -> n d0 l"
// CHECK: nn.rearrange "(n l) -> n l"
// CHECK: nn.embedding
// CHECK-COUNT-2: nn.rope %{{.*}} at %[[NUMBERS]]
// CHECK: nn.attention {{.*}} causal exchange ring zigzag 2 :

// A rank's first chunk sees the first of the other if it is behind it, the second sees the second if it is behind it, and every second chunk sees every first one: three pairs, of which a
// rank computes two. The two chunks are sent together.
// RING-LABEL: fsdp.segment @train train
// RING-COUNT-2: fsdp.collective_permute {{.*}} from [1, 0] over ["context"] {{.*}}tensor<2x4x1x3x2xf32>
// RING-COUNT-2: nn.attention {{.*}} causal :
// RING: nn.attention {{.*}} causal at [9, 3] over ["context"]
// RING: nn.attention {{.*}} causal at [-3, 3] over ["context"]
// RING: nn.attention {{.*}} causal at [3, -3] over ["context"]
// RING: nn.attention {{.*}} causal at [6, 6] over ["context"]
// RING-COUNT-2: fsdp.collective_permute {{.*}} from [1, 0] over ["context"] {{.*}}tensor<2x4x1x3x2xf32>
// RING: nn.attention_grad {{.*}} causal {
// RING: nn.attention_grad {{.*}} causal {
// RING: nn.attention_grad {{.*}} causal at [9, 3] over ["context"]
// RING: nn.attention_grad {{.*}} causal at [-3, 3] over ["context"]
// RING: nn.attention_grad {{.*}} causal at [3, -3] over ["context"]
// RING: nn.attention_grad {{.*}} causal at [6, 6] over ["context"]
// RING-COUNT-2: fsdp.collective_permute {{.*}} from [1, 0] over ["context"] {{.*}}tensor<2x4x1x3x2xf32>
// RING-LABEL: fsdp.segment @evaluate

// Gathered chunks are put in the order of positions, and gradients in that of ranks before they are scattered.
// GATHER-LABEL: fsdp.segment @train train
// GATHER-COUNT-2: fsdp.all_gather {{.*}} dim 0 over ["context"]{{.*}} : tensor<2x4x1x3x2xf32> -> tensor<4x4x1x3x2xf32>
// GATHER: nn.attention {{.*}} causal at [0, 3] over ["context"]{{.*}} : (tensor<4x3x3x2xf32>, tensor<4x1x12x2xf32>, tensor<4x1x12x2xf32>)
// GATHER: nn.attention {{.*}} causal at [9, 6] over ["context"]{{.*}} : (tensor<4x3x3x2xf32>, tensor<4x1x12x2xf32>, tensor<4x1x12x2xf32>)
// GATHER-COUNT-2: fsdp.all_gather {{.*}} dim 0 over ["context"]{{.*}} : tensor<2x4x1x3x2xf32> -> tensor<4x4x1x3x2xf32>
// GATHER: nn.attention_grad {{.*}} causal at [0, 3] over ["context"]
// GATHER: nn.attention_grad {{.*}} causal at [9, 6] over ["context"]
// GATHER-COUNT-2: fsdp.reduce_scatter {{.*}} dim 0 over ["context"]{{.*}} : tensor<4x4x1x3x2xf32> -> tensor<2x4x1x3x2xf32>
// GATHER-LABEL: fsdp.segment @evaluate

// THREE-LABEL: fsdp.segment @train train
// THREE-COUNT-12: fsdp.collective_permute {{.*}} from [2, 0, 1] over ["context"]
// THREE-LABEL: fsdp.segment @evaluate
// THREE-COUNT-4: fsdp.collective_permute {{.*}} from [2, 0, 1] over ["context"]

// WINDOW: remark: attention over context=3: ring, {{.*}}; positions in zigzag order, the busiest rank
// SHORT: remark: attention over context=3: ring, {{.*}}; positions in contiguous order, the busiest rank computing 1.04 times the mean of scores
// IDS: remark: attention over context=2: gather, {{.*}}; positions in zigzag order
// CONTIGUOUS: remark: attention over context=2: ring, {{.*}}; positions in contiguous order, the busiest rank computing 1.46 times the mean of scores
// CONTIGUOUS: fsdp.context_order = "contiguous"
// CONTIGUOUS-NOT: zigzag
// ALL: remark: attention over context=2: ring, {{.*}}; positions in contiguous order, the busiest rank computing 1.00 times the mean of scores
// NONCAUSAL: error: --context-order=zigzag: attention is not causal, so that ranks compute as much as each other; use --context-order=contiguous, or auto
// FOUR: remark: attention over context=4: ring, {{.*}}; positions in contiguous order, as 8 chunks do not divide 12 positions, the busiest rank computing 1.69 times the mean of scores
// CHUNKS: error: --context-order=zigzag: 8 chunks do not divide 12 positions; use --context-order=contiguous, or auto
// DROP: remark: attention over context=2: ring, {{.*}}; positions in contiguous order, as 'fsdp.dropout', whose draws are numbered by positions, depends on the order of positions, the busiest rank computing 1.46 times the mean of scores
// DROPPED: error: --context-order=zigzag: 'fsdp.dropout', whose draws are numbered by positions, depends on the order of positions; use --context-order=contiguous, or auto
// TABLE: error: --context-order=zigzag: 'nn.embedding' along positions depends on the order of positions; use --context-order=contiguous, or auto
// SCAN: error: --context-order=zigzag: 'nn.scan_sum' along positions depends on the order of positions; use --context-order=contiguous, or auto
// HEADS: error: --context-order=zigzag: attention by all-to-all has all positions on each rank; use --context-order=contiguous, or auto
// WORD: error: --context-order got 'sorted', expected auto, zigzag or contiguous
// OPTION: fsdp.context_order = "contiguous"
// SAME: step 1 loss [[LOSS:[0-9]\.[0-9]{11}]]
// SAME: step 2 grad_norm [[NORM:[0-9]\.[0-9]{11}]]
// SAME: step 2 loss [[AFTER:[0-9]\.[0-9]{11}]]
// SAME: step 1 loss [[LOSS]]
// SAME: step 2 grad_norm [[NORM]]
// SAME: step 2 loss [[AFTER]]
// PADDED: remark: 13 positions over context=3: 5 on each rank, of which the last 2 are padding, which has no weight and is not a key; a multiple of 3 has none
// The last rank computes 65 of 120 scores, as the kernels do: 29 of them of queries that are padding.
// PADDED: remark: attention over context=3: ring, {{.*}} the busiest rank computing 1.6{{[23]}} times the mean of scores
// SEEN: error: --context-attention=ring: attention has 13 positions, of which 3 ranks have padding, and no causal mask, expected a multiple of 3; use gather or all-to-all, or another length
// UNKNOWN: error: --context-attention=gather: attention has 13 positions, of which 3 ranks have padding, and no causal mask, expected a multiple of 3; use all-to-all, or another length
// MESH: error: 'nn.attention' is in the zigzag order of 2 ranks, but is split over context=3, expected axes of that size; use --context-order=contiguous, or another mesh
fsdp.mesh @mesh <["fsdp"=2, "context"=2]>
fsdp.param @table : tensor<11x8xf32> unit "u" init <normal, 0.5>
fsdp.param @places : tensor<13x8xf32> unit "u" init <normal, 0.5>
fsdp.param @wq : tensor<8x3x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wk : tensor<8x1x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wv : tensor<8x1x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wo : tensor<3x2x8xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<8x12xi32>
  %to = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<8x12xi32>
  %table = fsdp.read @table : tensor<11x8xf32>
  %rows = nn.embedding %table, %ids : tensor<11x8xf32>, tensor<8x12xi32> -> tensor<8x12x8xf32>
  %all = fsdp.read @places : tensor<13x8xf32>
  %some = nn.slice %all dim 0 start 1 : tensor<13x8xf32> -> tensor<12x8xf32>
  %places = nn.repeat "t d -> b t d" %some : tensor<12x8xf32> -> tensor<8x12x8xf32>
  %x = arith.addf %rows, %places : tensor<8x12x8xf32>
  %wq = fsdp.read @wq : tensor<8x3x2xf32>
  %wk = fsdp.read @wk : tensor<8x1x2xf32>
  %wv = fsdp.read @wv : tensor<8x1x2xf32>
  %q = nn.einsum "btd,dhk->bhtk" %x, %wq : (tensor<8x12x8xf32>, tensor<8x3x2xf32>) -> tensor<8x3x12x2xf32>
  %k = nn.einsum "btd,dhk->bhtk" %x, %wk : (tensor<8x12x8xf32>, tensor<8x1x2xf32>) -> tensor<8x1x12x2xf32>
  %v = nn.einsum "btd,dhk->bhtk" %x, %wv : (tensor<8x12x8xf32>, tensor<8x1x2xf32>) -> tensor<8x1x12x2xf32>
  %qr = nn.rope %q dim 2 theta 1.0e+04 : tensor<8x3x12x2xf32>
  %kr = nn.rope %k dim 2 theta 1.0e+04 : tensor<8x1x12x2xf32>
  %a, %l = nn.attention %qr, %kr, %v scale 0.5 causal : (tensor<8x3x12x2xf32>, tensor<8x1x12x2xf32>, tensor<8x1x12x2xf32>) -> (tensor<8x3x12x2xf32>, tensor<8x3x12xf32>)
  %wo = fsdp.read @wo : tensor<3x2x8xf32>
  %o = nn.einsum "bhtk,hkd->btd" %a, %wo : (tensor<8x3x12x2xf32>, tensor<3x2x8xf32>) -> tensor<8x12x8xf32>
  %y = arith.addf %x, %o : tensor<8x12x8xf32>
  %again = fsdp.read @table : tensor<11x8xf32>
  %logits = nn.einsum "btd,vd->btv" %y, %again : (tensor<8x12x8xf32>, tensor<11x8xf32>) -> tensor<8x12x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %to : tensor<8x12x11xf32>, tensor<8x12xi32> -> tensor<8x12xf32>, tensor<8x12xf32>
  %total = nn.reduce sum "b t ->" %losses : tensor<8x12xf32> -> tensor<f64>
  %weight = arith.constant dense<96.0> : tensor<f64>
  fsdp.loss %total over %weight
}
