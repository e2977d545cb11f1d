// Attention split by positions, where 2 ranks do not divide 3 heads that share one group of keys and values: `auto` takes the ring, for documents `gather`.
// Rotations take the numbers of positions, so that they turn a rank's part. The numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-context-parallel 2>&1 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=RING --implicit-check-not=warning --implicit-check-not=all_to_all
// RUN: fsdp-opt %s --fsdp-to-local="context-attention=gather" 2>&1 | FileCheck %s --check-prefix=GATHER --implicit-check-not=warning --implicit-check-not=all_to_all --implicit-check-not=collective_permute
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t context-attention=gather accumulate=2 remat=full
// RUN: sed 's/"context"=2/"context"=3/; s/causal/causal window 3/' %s > %t.window.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.window.mlir %t.window accumulate=2 remat=full
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.window.mlir %t.window context-attention=gather
// RUN: sed 's/"context"=2/"context"=3/; s/causal/softcap 0.75/; s/"tensor"=1/"tensor"=2/' %s > %t.cap.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.cap.mlir %t.cap
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.cap.mlir %t.cap context-attention=gather
// A window of 3 keys reaches one block of 2 positions back: of three blocks one is sent, and the sums of its gradients go straight to its owner.
// RUN: fsdp-opt %t.window.mlir --fsdp-to-local | FileCheck %s --check-prefix=WINDOW --implicit-check-not=collective_permute
// Of three ranks each sends the next block while it attends to the one before, and waits for what it attends to alone.
// RUN: sed 's/"context"=2/"context"=3/' %s | fsdp-opt --fsdp-to-scheduled=context-order=contiguous 2> /dev/null | FileCheck %s --check-prefix=OVERLAP
// Documents and a bias, whose rows are split as the queries are.
// RUN: sed 's/%%kr, %%v scale 0.5 causal/%%kr, %%v, %%to scale 0.5 causal documents/; s/: (tensor<8x3x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>)/: (tensor<8x3x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x6xi32>)/' %s > %t.ids.mlir
// RUN: fsdp-opt %t.ids.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=IDS
// RUN: not fsdp-opt %t.ids.mlir --fsdp-context-parallel=attention=ring 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.ids.mlir %t.ids
// RUN: sed 's/%%kr, %%v scale 0.5 causal/%%kr, %%v, %%bias scale 0.5 causal bias/; s/: (tensor<8x3x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>)/: (tensor<8x3x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>, tensor<3x6x6xf32>)/; s/^fsdp.step/fsdp.param @bias : tensor<3x6x6xf32> unit "b" init <normal, 0.5>\nfsdp.step/; s/^  %%ids = /  %%bias = fsdp.read @bias : tensor<3x6x6xf32>\n&/' %s > %t.bias.mlir
// RUN: not fsdp-opt %t.bias.mlir --fsdp-context-parallel=attention=ring 2>&1 | FileCheck %s --check-prefix=BIAS
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.bias.mlir %t.bias
// Of 6 positions 4 ranks have 2 of padding: gathered keys end with the bias. Ids have no columns for it.
// RUN: sed 's/"fsdp"=2, "context"=2/"context"=4/' %t.bias.mlir > %t.padded.mlir
// RUN: fsdp-opt %t.padded.mlir --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=PADDED
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.padded.mlir %t.padded
// RUN: sed 's/ causal bias/ causal window 2 bias/' %t.padded.mlir > %t.near.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.near.mlir %t.near accumulate=2 remat=full
// RUN: sed 's/%%v, %%bias scale/%%v, %%bias, %%to scale/; s/ causal bias/ causal bias documents/; s/tensor<3x6x6xf32>) ->/tensor<3x6x6xf32>, tensor<8x6xi32>) ->/' %t.padded.mlir | not fsdp-opt --fsdp-context-parallel=attention=gather 2>&1 | FileCheck %s --check-prefix=IDS-AND-BIAS
// Keys of another sequence than the queries'.
// RUN: sed 's/bhtk" %%x, %%w\([kv]\)/bhtk" %%some_x, %%w\1/; s/8x1x6x2xf32/8x1x5x2xf32/g; s/(tensor<8x6x8xf32>, tensor<8x1x2xf32>)/(tensor<8x5x8xf32>, tensor<8x1x2xf32>)/; s/^  %%wq = /  %%some_x = nn.slice %%x dim 1 start 1 : tensor<8x6x8xf32> -> tensor<8x5x8xf32>\n&/; s/ causal//' %s > %t.other.mlir
// RUN: not fsdp-opt %t.other.mlir --fsdp-context-parallel=attention=gather 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/"context"=2/"context"=3/' %t.other.mlir > %t.heads.mlir
// RUN: not fsdp-opt %t.heads.mlir --fsdp-context-parallel=attention=gather 2>&1 | FileCheck %s --check-prefix=HEADS
// The same with ids of documents.
// RUN: sed 's/bhtk" %%x, %%w\([kv]\)/bhtk" %%long_x, %%w\1/; s/8x1x6x2xf32/8x1x7x2xf32/g; s/(tensor<8x6x8xf32>, tensor<8x1x2xf32>)/(tensor<8x7x8xf32>, tensor<8x1x2xf32>)/; s/ causal/ documents/; s/%%kr, %%v scale/%%kr, %%v, %%long_ids scale/; s/tensor<8x1x7x2xf32>, tensor<8x1x7x2xf32>) ->/tensor<8x1x7x2xf32>, tensor<8x1x7x2xf32>, tensor<8x7xi32>) ->/; s/^  %%wq = /  %%long_x = fsdp.input "memory" sample_dim 0 : tensor<8x7x8xf32>\n  %%long_ids = fsdp.input "ids" sample_dim 0 : tensor<8x7xi32>\n&/' %s > %t.long.mlir
// RUN: not fsdp-opt %t.long.mlir --fsdp-context-parallel=attention=gather 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: sed 's/"context"=2/"context"=4/' %t.long.mlir | not fsdp-opt --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=LONG-HEADS
// Heads are then all that can be split: where they do not divide, what does is named; so it is where a constraint splits them by hand over `tensor`.
// RUN: not fsdp-opt %t.other.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=CROSS
// RUN: sed 's/"tensor"=1/"tensor"=2/' %t.other.mlir | not fsdp-opt --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=CROSS-TENSOR
// RUN: sed 's/"tensor"=1/"tensor"=3/; s/^  %%qr = nn.rope %%q /  %%qh = fsdp.constraint %%q <@mesh, [{?}, {"tensor"}, {?}, {?}]> : tensor<8x3x6x2xf32>\n  %%qr = nn.rope %%qh /' %s > %t.hand.mlir
// RUN: not fsdp-opt %t.hand.mlir --fsdp-context-parallel=attention=all-to-all 2>&1 | FileCheck %s --check-prefix=HAND
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.hand.mlir %t.hand
// Where padding would be keys, which no causal mask hides.
// RUN: sed 's/ causal//' %s | fsdp-opt --fsdp-context-parallel | sed 's/"fsdp"=2, "context"=2/"fsdp"=2, "context"=4/' | not fsdp-opt --pass-pipeline='builtin.module(fsdp-shard-parameters,fsdp.step(fsdp-differentiate,fsdp-apply-optimizer),fsdp-propagate,fsdp-partition)' 2>&1 | FileCheck %s --check-prefix=UNEVEN

// CHECK: remark: attention over context=2: ring, keys and values from rank to rank (3 of 6 queries on each rank); positions in contiguous order, as 4 chunks do not divide 6 positions, the busiest rank computing 1.43 times the mean of scores
// CHECK: fsdp.context_attention = "ring"
// CHECK: %[[Q:.*]] = nn.rope %{{.*}} at %{{.*}} : tensor<8x6xi32> dim 2 theta
// CHECK: fsdp.constraint %[[Q]] <@mesh, [{?}, {?}, {"context"}, {?}]> : tensor<8x3x6x2xf32>
// CHECK: nn.attention {{.*}} causal exchange ring :
// CHECK: fsdp.constraint {{.*}} <@mesh, [{?}, {?}, {"context"}, {?}]> : tensor<8x3x6x2xf32>

// Keys and values are sent on before a rank attends to its own. Backward sends them again, and with them sums of gradients.
// RING-LABEL: fsdp.segment @train train
// RING: %[[K:.*]] = fsdp.collective_permute %{{.*}} from [1, 0] over ["context"]{{.*}} : tensor<4x1x3x2xf32>
// RING: %[[V:.*]] = fsdp.collective_permute %{{.*}} from [1, 0] over ["context"]{{.*}} : tensor<4x1x3x2xf32>
// RING: %{{.*}}, %[[OWN:.*]] = nn.attention {{.*}} scale 5.000000e-01 causal :
// RING: %{{.*}}, %[[NEXT:.*]] = nn.attention %{{.*}}, %[[K]], %[[V]] scale 5.000000e-01 causal at [-3, 3] over ["context"]{{.*}} :
// RING: nn.fused {{.*}}%[[OWN]], %[[NEXT]]
// RING: arith.maximumf
// RING-COUNT-2: fsdp.collective_permute {{.*}} from [1, 0] over ["context"]{{.*}} : tensor<4x1x3x2xf32>
// RING: nn.attention_grad {{.*}} causal {fsdp
// RING: nn.attention_grad {{.*}} causal at [-3, 3] over ["context"]{{.*}} :
// RING-COUNT-2: fsdp.collective_permute {{.*}} from [1, 0] over ["context"]{{.*}} : tensor<4x1x3x2xf32>
// RING-LABEL: fsdp.segment @evaluate

// GATHER-LABEL: fsdp.segment @train train
// GATHER-COUNT-2: fsdp.all_gather {{.*}} dim 2 over ["context"]{{.*}} : tensor<4x1x3x2xf32> -> tensor<4x1x6x2xf32>
// GATHER: nn.attention {{.*}} causal at [0, 3] over ["context"]{{.*}} : (tensor<4x3x3x2xf32>, tensor<4x1x6x2xf32>, tensor<4x1x6x2xf32>)
// GATHER-COUNT-2: fsdp.all_gather {{.*}} dim 2 over ["context"]{{.*}} : tensor<4x1x3x2xf32> -> tensor<4x1x6x2xf32>
// GATHER: nn.attention_grad {{.*}} causal at [0, 3] over ["context"]
// GATHER-COUNT-2: fsdp.reduce_scatter {{.*}} dim 2 over ["context"]{{.*}} : tensor<4x1x6x2xf32> -> tensor<4x1x3x2xf32>
// GATHER-LABEL: fsdp.segment @evaluate

// WINDOW-LABEL: fsdp.segment @train train
// WINDOW-COUNT-2: fsdp.collective_permute {{.*}} from [2, 0, 1] over ["context"]
// WINDOW: nn.attention {{.*}} window 3 at [-4, 2, 2] over ["context"]
// WINDOW-COUNT-2: fsdp.collective_permute {{.*}} from [2, 0, 1] over ["context"]
// WINDOW-COUNT-2: fsdp.collective_permute {{.*}} from [1, 2, 0] over ["context"]
// WINDOW-LABEL: fsdp.segment @evaluate
// WINDOW-COUNT-2: fsdp.collective_permute {{.*}} from [2, 0, 1] over ["context"]

// OVERLAP: fsdp.launch "collective_permute" on "activation" wait(
// OVERLAP: %[[FIRST:.*]] = fsdp.launch "collective_permute 2" on "activation" ins(
// OVERLAP: fsdp.launch "attention" on "compute" ins(
// OVERLAP: fsdp.launch "collective_permute 3" on "activation" ins(
// OVERLAP: %[[SECOND:.*]] = fsdp.launch "collective_permute 4" on "activation" ins(
// OVERLAP: fsdp.launch "attention 2" on "compute" wait(%[[FIRST]]) ins(
// OVERLAP: fsdp.launch "attention 3" on "compute" wait(%[[SECOND]]) ins(

// IDS: remark: attention over context=2: gather, keys and values of all ranks on each (3 of 6 queries on each rank)
// REFUSED: error: --context-attention=ring: attention has the ids of documents, for which a rank needs all keys, expected causal masks, windows and caps alone; use gather or all-to-all
// BIAS: error: --context-attention=ring: attention has a bias, for which a rank needs all keys, expected causal masks, windows and caps alone; use gather or all-to-all
// Of the last rank's 2 queries, which are padding, each sees the 6 keys: 12 of 33 scores.
// PADDED: remark: attention over context=4: gather, keys and values of all ranks on each (2 of 6 queries on each rank); positions in contiguous order, as attention has a bias, whose keys are in the order of positions, the busiest rank computing 1.45 times the mean of scores
// PADDED: nn.attention {{.*}} causal bias at [0, 2, 4, 6] over ["context"]{{.*}} : (tensor<8x3x2x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>, tensor<3x2x6xf32>)
// PADDED: nn.attention_bias_grad {{.*}} causal at [0, 2, 4, 6] over ["context"]
// IDS-AND-BIAS: error: --context-attention=gather: attention has 6 positions, of which 4 ranks have padding, and documents with a bias, expected a multiple of 4; use all-to-all, or another length
// OTHER: error: --context-attention=gather: attention takes keys and values of another sequence than its queries, got 6 queries and 5 keys, expected those of one sequence; give the axis 'context' a size of 3
// HEADS: error: --context-attention=gather: attention takes keys and values of another sequence than its queries, got 6 queries and 5 keys, expected those of one sequence; use all-to-all
// LONG: error: --context-attention=gather: attention takes keys and values of another sequence than its queries, got 6 queries and 7 keys with the ids of their documents, expected those of one sequence; give the axis 'context' a size of 3
// LONG-HEADS: error: the mesh splits attention by heads over context=4, got 3 heads in 1 groups of keys and values, expected a multiple of 4 groups, or a multiple of 4 heads in groups that divide 4; keys of another sequence than the queries are split in no other way: give the axis 'context' a size of 3
// CROSS: error: the mesh splits attention by heads over context=2, got 3 heads in 1 groups of keys and values, expected a multiple of 2 groups, or a multiple of 2 heads in groups that divide 2; keys of another sequence than the queries are split in no other way: give the axis 'context' a size of 3
// CROSS-TENSOR: error: the mesh splits attention by heads over tensor+context=4, got 3 heads in 1 groups of keys and values, expected a multiple of 4 groups, or a multiple of 4 heads in groups that divide 4; keys of another sequence than the queries are split in no other way: give the axes 'tensor' and 'context' the sizes 1*3{{$}}
// HAND: error: the mesh splits attention by heads over tensor+context=6, got 3 heads in 1 groups of keys and values, expected a multiple of 6 groups, or a multiple of 6 heads in groups that divide 6; give the axes 'tensor' and 'context' the sizes 1*3, or use --context-attention=ring
// UNEVEN: error: 'nn.attention' is split over context=4, got 6 positions, expected a multiple of 4; use another length, or another mesh
fsdp.mesh @mesh <["fsdp"=2, "context"=2, "tensor"=1]>
fsdp.param @table : tensor<11x8xf32> unit "u" init <normal, 0.5>
fsdp.param @places : tensor<7x8xf32> unit "u" init <normal, 0.5>
fsdp.param @wq : tensor<8x3x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wk : tensor<8x1x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wv : tensor<8x1x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wo : tensor<3x2x8xf32> unit "u" init <normal, 0.5> split [[], [], ["tensor"]]
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<8x6xi32>
  %to = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<8x6xi32>
  %table = fsdp.read @table : tensor<11x8xf32>
  %rows = nn.embedding %table, %ids : tensor<11x8xf32>, tensor<8x6xi32> -> tensor<8x6x8xf32>
  %all = fsdp.read @places : tensor<7x8xf32>
  %some = nn.slice %all dim 0 start 1 : tensor<7x8xf32> -> tensor<6x8xf32>
  %places = nn.repeat "t d -> b t d" %some : tensor<6x8xf32> -> tensor<8x6x8xf32>
  %sum = arith.addf %rows, %places : tensor<8x6x8xf32>
  %x = fsdp.constraint %sum <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x8xf32>
  %wq = fsdp.read @wq : tensor<8x3x2xf32>
  %wk = fsdp.read @wk : tensor<8x1x2xf32>
  %wv = fsdp.read @wv : tensor<8x1x2xf32>
  %q = nn.einsum "btd,dhk->bhtk" %x, %wq : (tensor<8x6x8xf32>, tensor<8x3x2xf32>) -> tensor<8x3x6x2xf32>
  %k = nn.einsum "btd,dhk->bhtk" %x, %wk : (tensor<8x6x8xf32>, tensor<8x1x2xf32>) -> tensor<8x1x6x2xf32>
  %v = nn.einsum "btd,dhk->bhtk" %x, %wv : (tensor<8x6x8xf32>, tensor<8x1x2xf32>) -> tensor<8x1x6x2xf32>
  %qr = nn.rope %q dim 2 theta 1.0e+04 : tensor<8x3x6x2xf32>
  %kr = nn.rope %k dim 2 theta 1.0e+04 : tensor<8x1x6x2xf32>
  %a, %l = nn.attention %qr, %kr, %v scale 0.5 causal : (tensor<8x3x6x2xf32>, tensor<8x1x6x2xf32>, tensor<8x1x6x2xf32>) -> (tensor<8x3x6x2xf32>, tensor<8x3x6xf32>)
  %wo = fsdp.read @wo : tensor<3x2x8xf32>
  %o = nn.einsum "bhtk,hkd->btd" %a, %wo : (tensor<8x3x6x2xf32>, tensor<3x2x8xf32>) -> tensor<8x6x8xf32>
  %y = arith.addf %x, %o : tensor<8x6x8xf32>
  %again = fsdp.read @table : tensor<11x8xf32>
  %logits = nn.einsum "btd,vd->btv" %y, %again : (tensor<8x6x8xf32>, tensor<11x8xf32>) -> tensor<8x6x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %to : tensor<8x6x11xf32>, tensor<8x6xi32> -> tensor<8x6xf32>, tensor<8x6xf32>
  %total = nn.reduce sum "b t ->" %losses : tensor<8x6xf32> -> tensor<f64>
  %weight = arith.constant dense<48.0> : tensor<f64>
  fsdp.loss %total over %weight
}
