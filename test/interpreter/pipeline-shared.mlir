// What several stages of a pipeline share is computed, and its gradient reduced, in the stage that uses it: `s`, a vector that scales the
// rows of all blocks, and `w`, a weight of three uses in two stages. `g`, which the first stage computes from samples, is sent forward, and
// backward of the other stages takes it as it was received. So no stage computes for another one, and no whole weight is in a message.
// RUN: %{python} -c "import json,struct,random; d=random.Random(5); h=json.dumps({'x':{'dtype':'F32','shape':[12,8],'data_offsets':[0,384]}}).encode(); h+=b' '*(-len(h)%8); open('%t.st','wb').write(struct.pack('<Q',len(h))+h+struct.pack('<96f',*[d.gauss(0,1) for _ in range(96)]))"
// RUN: fsdp-opt %s --fsdp-to-global=accumulate=3 | fsdp-run --inputs=%t.st --seed=3 --steps=3 --numerics=exact - | FileCheck %s --check-prefix=LOSS
// RUN: fsdp-opt %s --fsdp-to-local="accumulate=3 stages=2,1,2" | fsdp-run --inputs=%t.st --seed=3 --steps=3 --numerics=exact - | FileCheck %s --check-prefix=LOSS
// RUN: fsdp-opt %s --fsdp-to-scheduled="accumulate=3 stages=2,1,2" | fsdp-run --inputs=%t.st --seed=3 --steps=3 --numerics=exact - | FileCheck %s --check-prefix=LOSS
// RUN: fsdp-opt %s --fsdp-to-scheduled="accumulate=3 stages=2,1,2 pipeline-schedule=zb tied-gradients=once remat=full" | fsdp-run --inputs=%t.st --seed=3 --steps=3 --numerics=exact - | FileCheck %s --check-prefix=LOSS
// RUN: fsdp-opt %s --fsdp-to-scheduled="stages=3,1,1 pipeline-schedule=gpipe strategy=zero1" | fsdp-run --inputs=%t.st --seed=3 --steps=3 --numerics=exact - | FileCheck %s --check-prefix=LOSS

// LOSS: step 3 grad_norm 0.0144644672572
// LOSS-NEXT: step 3 loss 0.00139825910646947

// RUN: fsdp-opt %s --fsdp-to-scheduled="accumulate=3 stages=2,1,2" > %t
// RUN: FileCheck %s --check-prefix=SHARED < %t
// SHARED-DAG: fsdp.storage @shared.flat : tensor<16xf32> flat over ["fsdp"] states
// SHARED-DAG: fsdp.storage @w.flat : tensor<32xf32> flat over ["fsdp"] roles [@pipeline0, @pipeline2]
// RUN: grep -E 'fsdp.(send|receive)' %t | not grep -E '<(64|8x8)xf32>'
// Each of 3 microbatches sends the results of a block and `g` from rank to rank: 4 values forward and 4 cotangents back, and 4 in an
// evaluation. Shards of both gradients of `w` follow the last microbatch.
// RUN: grep -c 'fsdp.send.*tensor<2x8xf32>' %t | FileCheck %s --check-prefix=SAMPLES
// SAMPLES: {{^36$}}
// RUN: grep -c 'fsdp.send.*tensor<32xf32>' %t | FileCheck %s --check-prefix=SHARDS
// SHARDS: {{^2$}}
// Backward of a block is in its stage.
// RUN: not grep -E 'on "compute" of "(b|c|d)" backward microbatch' %t
// RUN: not grep -E 'on "compute" of "(a|c|d)" backward stage 1' %t
// RUN: not grep -E 'on "compute" of "(a|b)" backward stage 2' %t
// Of 3 microbatches, each of two rows a rank, the stages compute 5, 3 and 9 products with weights; their flops, with elementwise ops, are those of 6, 3 and 10. The last stage turns round in a kernel of
// forward and backward; its idle time is known.
// RUN: fsdpc %s --accumulate=3 --stages=2,1,2 --emit=scheduled -o %t.scheduled --report=%t.json > /dev/null
// RUN: %{python} -c "import json; r=json.load(open('%t.json'))['roles']; print([v['flops'] // (3*2*2*8*8) for v in r], ['%%.3f' %% v['idle'] for v in r])" | FileCheck %s --check-prefix=REPORT
// REPORT: [6, 3, 10] ['0.400', '0.400', '0.400']
fsdp.mesh @mesh <["pipeline"=3, "fsdp"=2]>
fsdp.param @s : tensor<8xf32> unit "shared" init <normal, 0.5>
fsdp.param @w : tensor<8x8xf32> unit "w" init <normal, 0.3>
fsdp.param @a : tensor<8x8xf32> unit "a" init <normal, 0.3>
fsdp.param @b : tensor<8x8xf32> unit "b" init <normal, 0.3>
fsdp.param @c : tensor<8x8xf32> unit "c" init <normal, 0.3>
fsdp.step @train train optimizer <adamw, lr = 0.05, clip = 0.5> {
  %x = fsdp.input "x" sample_dim 0 : tensor<12x8xf32>
  %s = fsdp.read @s : tensor<8xf32>
  %w = fsdp.read @w : tensor<8x8xf32>
  %a = fsdp.read @a : tensor<8x8xf32>
  %b = fsdp.read @b : tensor<8x8xf32>
  %c = fsdp.read @c : tensor<8x8xf32>
  %e = math.exp %s {fsdp.structure = #fsdp.structure<"shared">} : tensor<8xf32>
  %r = nn.repeat "o -> b o" %e {fsdp.structure = #fsdp.structure<"shared">} : tensor<8xf32> -> tensor<12x8xf32>
  %a1 = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %g = math.tanh %a1 {fsdp.structure = #fsdp.structure<"a">} : tensor<12x8xf32>
  %a2 = arith.mulf %a1, %r {fsdp.structure = #fsdp.structure<"a">} : tensor<12x8xf32>
  %a3 = nn.einsum "bi,io->bo" %a2, %w {fsdp.structure = #fsdp.structure<"a">} : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %b1 = nn.einsum "bi,io->bo" %a3, %b {fsdp.structure = #fsdp.structure<"b">} : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %b2 = arith.mulf %b1, %r {fsdp.structure = #fsdp.structure<"b">} : tensor<12x8xf32>
  %b3 = arith.mulf %b2, %g {fsdp.structure = #fsdp.structure<"b">} : tensor<12x8xf32>
  %c1 = nn.einsum "bi,io->bo" %b3, %c {fsdp.structure = #fsdp.structure<"c">} : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %c2 = arith.mulf %c1, %r {fsdp.structure = #fsdp.structure<"c">} : tensor<12x8xf32>
  %c3 = arith.mulf %c2, %g {fsdp.structure = #fsdp.structure<"c">} : tensor<12x8xf32>
  %c4 = nn.einsum "bi,io->bo" %c3, %w {fsdp.structure = #fsdp.structure<"c">} : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %d1 = nn.einsum "bi,io->bo" %c4, %w {fsdp.structure = #fsdp.structure<"d">} : (tensor<12x8xf32>, tensor<8x8xf32>) -> tensor<12x8xf32>
  %d2 = arith.mulf %d1, %d1 {fsdp.structure = #fsdp.structure<"d">} : tensor<12x8xf32>
  %total = nn.reduce sum "b i ->" %d2 {fsdp.structure = #fsdp.structure<"d">} : tensor<12x8xf32> -> tensor<f64>
  %count = arith.constant dense<96.0> : tensor<f64>
  fsdp.loss %total over %count
}
