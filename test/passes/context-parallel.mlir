// Sequences split over the axis `context`: inputs and the residual stream along their positions, attention by heads, with all-to-alls in front of its
// operands (and of the rotations that they go through) and behind its result. The added table of positions becomes a lookup, so that its gradient
// is a term of the unit's one reduce-scatter, over `fsdp` and `context` together. The numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-context-parallel 2>&1 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=LOCAL --implicit-check-not=warning --implicit-check-not="all_reduce{{.*}}f32"
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.remat accumulate=2 remat=full
// RUN: sed 's/"tensor"=1/"tensor"=2/' %s > %t.mesh.mlir; %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.mesh.mlir %t.mesh
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.mesh.mlir %t.mesh sequence-parallel=off strategy=zero2
// RUN: sed 's/"context"=2/"context"=4/; s/"fsdp"=2/"fsdp"=1/' %s > %t.four.mlir; %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.four.mlir %t.four
// RUN: fsdp-opt %t.mesh.mlir --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=BOTH
// Without the axis the model computes the same, bit for bit on one device.
// RUN: sed 's/"context"=2/"context"=1/' %s | fsdp-opt --fsdp-to-global -o %t.one.mlir
// RUN: fsdp-run %t.one.mlir --inputs=%t/inputs.safetensors --outputs=%t.one.safetensors --steps=3 --numerics=exact --seed=5 && cmp %t.one.safetensors %t/global.safetensors
// Without the axis, or with one position of it, nothing is constrained.
// RUN: sed 's/"context"=2/"context"=1/' %s | fsdp-opt --fsdp-context-parallel | FileCheck %s --check-prefix=ONE --implicit-check-not="constraint {{.*}}context"
// RUN: not fsdp-opt %s --fsdp-context-parallel=attention=sometimes 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: sed 's/"context"=2/"context"=3/' %s | fsdp-opt --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: sed 's/"tensor"=1/"tensor"=3/' %s | not fsdp-opt --fsdp-context-parallel=attention=all-to-all 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: sed 's/fsdp.tokens/fsdp.ids/; s/fsdp.targets/fsdp.to/; s/ {sequence_parallel}//' %s | not fsdp-opt --fsdp-context-parallel 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: remark: attention over context=2: all-to-all, from positions to heads and back (2 of 4 heads on each rank)
// CHECK: %[[IN:.*]] = fsdp.input "tokens"
// CHECK: %[[TOKENS:.*]] = fsdp.constraint %[[IN]] <@mesh, [{?}, {"context"}]> : tensor<8x4xi32>
// CHECK: %[[COUNT:.*]] = nn.scan_sum "t" along "t" {{.*}} exclusive : tensor<4xf32>
// CHECK: arith.fptosi %[[COUNT]]
// CHECK: arith.addi
// CHECK: fsdp.constraint {{.*}} <@mesh, [{}]> : tensor<4xi32>
// CHECK: %[[IDS:.*]] = nn.repeat "t -> b t"
// CHECK: nn.embedding %{{.*}}, %[[IDS]] : tensor<6x8xf32>, tensor<8x4xi32> -> tensor<8x4x8xf32>
// CHECK: fsdp.constraint {{.*}} <@mesh, [{?}, {?}, {"context"}, {?}]> {fsdp.taken_by_heads} : tensor<8x4x4x2xf32>
// CHECK-COUNT-2: fsdp.constraint {{.*}} <@mesh, [{?}, {?}, {"context"}, {?}]> {fsdp.taken_by_heads} : tensor<8x2x4x2xf32>
// CHECK-COUNT-2: nn.rope
// CHECK: %[[OUT:.*]], %{{.*}} = nn.attention
// CHECK: %[[HEADS:.*]] = fsdp.constraint %[[OUT]] <@mesh, [{?}, {"context"}, {}, {?}]> : tensor<8x4x4x2xf32>
// CHECK: fsdp.constraint %[[HEADS]] <@mesh, [{?}, {?}, {"context"}, {?}]> : tensor<8x4x4x2xf32>

// Two samples a rank, two positions of them; queries, keys and values to heads, the result back; backward alike.
// LOCAL-LABEL: fsdp.segment @train train
// LOCAL: fsdp.input "tokens" {{.*}} : tensor<4x4xi32>
// LOCAL: fsdp.all_slice {{.*}} dim 1 over ["context"]{{.*}} : tensor<4x4xi32> -> tensor<4x2xi32>
// LOCAL: fsdp.all_gather {{.*}} over ["context", "fsdp"]
// LOCAL-COUNT-3: fsdp.all_to_all {{.*}} over ["context"]
// LOCAL: nn.attention {{.*}}tensor<4x2x4x2xf32>
// LOCAL: fsdp.all_to_all {{.*}} over ["context"]
// LOCAL: fsdp.all_to_all {{.*}} over ["context"]
// LOCAL: nn.attention_grad
// LOCAL-COUNT-3: fsdp.all_to_all {{.*}} over ["context"]
// LOCAL: fsdp.reduce_scatter {{.*}} over ["context", "fsdp"]
// LOCAL-NOT: fsdp.reduce_scatter
// LOCAL-LABEL: fsdp.segment @evaluate

// BOTH: fsdp.constraint {{.*}} <@mesh, [{?}, {"context", ?}, {?}]> : tensor<8x4x8xf32>
// BOTH: fsdp.constraint {{.*}} <@mesh, [{?}, {"context", "tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel}
// ONE: fsdp.step @train
// WORD: error: --context-attention got 'sometimes', expected auto, all-to-all, gather or ring
// LENGTH: remark: 4 positions over context=3: 2 on each rank, of which the last 2 are padding, which has no weight and is not a key; a multiple of 3 has none
// GROUPS: error: the mesh splits attention by heads over tensor+context=6, got 4 heads in 2 groups of keys and values, expected a multiple of 6 groups, or a multiple of 6 heads in groups that divide 6; give the axes 'tensor' and 'context' the sizes 1*2, 2*2, 1*4, or use --context-attention=ring
// NONE: error: the mesh splits sequences over context=2, but the model has no tokens and marks no positions; write sequenceParallel(x) on its residual stream, compute with the axis in a manual region, or use another axis
fsdp.mesh @mesh <["context"=2, "fsdp"=2, "tensor"=1]>
fsdp.param @table : tensor<11x8xf32> unit "u" init <normal, 0.5>
fsdp.param @places : tensor<6x8xf32> unit "u" init <normal, 0.5>
fsdp.param @wq : tensor<8x4x2xf32> unit "u" init <normal, 0.5> split [[], ["tensor"], []]
fsdp.param @wk : tensor<8x2x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wv : tensor<8x2x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wo : tensor<4x2x8xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<8x4xi32>
  %to = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<8x4xi32>
  %table = fsdp.read @table : tensor<11x8xf32>
  %rows = nn.embedding %table, %ids : tensor<11x8xf32>, tensor<8x4xi32> -> tensor<8x4x8xf32>
  %all = fsdp.read @places : tensor<6x8xf32>
  %some = nn.slice %all dim 0 start 1 : tensor<6x8xf32> -> tensor<4x8xf32>
  %places = nn.repeat "t d -> b t d" %some : tensor<4x8xf32> -> tensor<8x4x8xf32>
  %sum = arith.addf %rows, %places : tensor<8x4x8xf32>
  %x = fsdp.constraint %sum <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x4x8xf32>
  %wq = fsdp.read @wq : tensor<8x4x2xf32>
  %wk = fsdp.read @wk : tensor<8x2x2xf32>
  %wv = fsdp.read @wv : tensor<8x2x2xf32>
  %q = nn.einsum "btd,dhk->bhtk" %x, %wq : (tensor<8x4x8xf32>, tensor<8x4x2xf32>) -> tensor<8x4x4x2xf32>
  %k = nn.einsum "btd,dhk->bhtk" %x, %wk : (tensor<8x4x8xf32>, tensor<8x2x2xf32>) -> tensor<8x2x4x2xf32>
  %v = nn.einsum "btd,dhk->bhtk" %x, %wv : (tensor<8x4x8xf32>, tensor<8x2x2xf32>) -> tensor<8x2x4x2xf32>
  %qr = nn.rope %q dim 2 theta 1.0e+04 : tensor<8x4x4x2xf32>
  %kr = nn.rope %k dim 2 theta 1.0e+04 : tensor<8x2x4x2xf32>
  %a, %l = nn.attention %qr, %kr, %v scale 0.5 causal : (tensor<8x4x4x2xf32>, tensor<8x2x4x2xf32>, tensor<8x2x4x2xf32>) -> (tensor<8x4x4x2xf32>, tensor<8x4x4xf32>)
  %wo = fsdp.read @wo : tensor<4x2x8xf32>
  %o = nn.einsum "bhtk,hkd->btd" %a, %wo : (tensor<8x4x4x2xf32>, tensor<4x2x8xf32>) -> tensor<8x4x8xf32>
  %y = arith.addf %x, %o : tensor<8x4x8xf32>
  %again = fsdp.read @table : tensor<11x8xf32>
  %logits = nn.einsum "btd,vd->btv" %y, %again : (tensor<8x4x8xf32>, tensor<11x8xf32>) -> tensor<8x4x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %to : tensor<8x4x11xf32>, tensor<8x4xi32> -> tensor<8x4xf32>, tensor<8x4xf32>
  %total = nn.reduce sum "b t ->" %losses : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %total over %weight
}
