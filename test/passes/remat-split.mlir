// A stream whose positions are split over `tensor` and that products take as it is, without a norm before them: a region keeps its part
// of the input, as it keeps that of a norm, and backward gathers it again for the gradient of the weight (selective) or to compute the
// block again (full, every:2). A block has 1 gather and 1 reduce-scatter forward and as many in backward, and 1 gather more; of the
// two blocks of a region the first is summed again.
// RUN: bash -c 'set -e; for remat in none selective full every:2; do fsdp-opt %s --fsdp-to-local=remat=$remat -o %t.mlir; %{python} -B %S/Inputs/count_collectives.py %t.mlir | sed -n "s/^train/$remat/p"; done' | FileCheck %s --check-prefix=COUNT
// RUN: bash -c 'set -e; for remat in selective full every:2; do %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t remat=$remat; done' | FileCheck %s --check-prefix=SAME
// Uneven parts of positions and microbatches too.
// RUN: bash -c 'set -e; sed "s/8x6x/8x5x/g; s/t = 6/t = 5/" %s > %t.odd.mlir; %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.odd.mlir %t.odd remat=every:2 sequence-parallel=on; %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t remat=selective accumulate=3' | FileCheck %s --check-prefix=ODD
// RUN: fsdp-opt %s --fsdp-rematerialize=policy=full --fsdp-differentiate | FileCheck %s --check-prefix=FULL
// RUN: fsdp-opt %s --fsdp-rematerialize=policy=full --fsdp-differentiate --cse --canonicalize --cse | FileCheck %s --check-prefix=FULL
// RUN: fsdp-opt %s --fsdp-rematerialize=policy=selective --fsdp-differentiate | FileCheck %s --check-prefix=SELECTIVE
// RUN: fsdp-opt %s --fsdp-differentiate | FileCheck %s --check-prefix=NONE --implicit-check-not=".again"

// COUNT: none: {{.*}}all_gather tensor x 4, {{.*}}reduce_scatter tensor x 4{{$}}
// COUNT-NEXT: selective: {{.*}}all_gather tensor x 6, {{.*}}reduce_scatter tensor x 4{{$}}
// COUNT-NEXT: full: {{.*}}all_gather tensor x 6, {{.*}}reduce_scatter tensor x 4{{$}}
// COUNT-NEXT: every:2: {{.*}}all_gather tensor x 6, {{.*}}reduce_scatter tensor x 5{{$}}
// SAME-COUNT-3: same numbers
// ODD-COUNT-2: same numbers

// What is kept has a name of its own in the backward of its region, one for all that may gather it: the product that is computed again and the
// gradient of the weight. It asks for no sharding. Sums and elementwise ops take what is kept.
// FULL-LABEL: fsdp.step @train
// FULL: %[[X0:.*]] = fsdp.constraint
// FULL: %[[H:.*]] = nn.einsum "bti,io->bto" %[[X0]],
// FULL: %[[X1:.*]] = arith.addf %[[X0]],
// FULL: %[[AGAIN:.*]] = fsdp.constraint %[[X1]] <@mesh, [{?}, {?}, {?}]> {fsdp.structure = #fsdp.structure<"u1" backward recomputed>}
// FULL: nn.einsum "bti,io->bto" %[[AGAIN]], {{.*}}<"u1" backward recomputed>
// FULL: nn.einsum "bti,bto->io" %[[AGAIN]], {{.*}}<"u1" backward>
// FULL-NOT: %[[X1]]{{[^_0-9]}}
// FULL: %[[AGAIN0:.*]] = fsdp.constraint %[[X0]] <@mesh, [{?}, {?}, {?}]> {fsdp.structure = #fsdp.structure<"u0" backward recomputed>}
// FULL: nn.einsum "bti,io->bto" %[[AGAIN0]], {{.*}}<"u0" backward recomputed>
// FULL: nn.einsum "bti,bto->io" %[[AGAIN0]], {{.*}}<"u0" backward>
// FULL-NOT: fsdp.constraint {{.*}}[{?}, {?}, {?}]
// FULL: fsdp.gradient @first
// SELECTIVE-LABEL: fsdp.step @train
// SELECTIVE: %[[H:.*]] = nn.einsum "bti,io->bto" {{.*}}<"u1">
// SELECTIVE: %[[AGAIN:.*]] = fsdp.constraint {{.*}}[{?}, {?}, {?}]> {fsdp.structure = #fsdp.structure<"u1" backward recomputed>}
// SELECTIVE: math.tanh %[[H]] {fsdp.structure = #fsdp.structure<"u1" backward recomputed>}
// SELECTIVE: nn.einsum "bti,bto->io" %[[AGAIN]], {{.*}}<"u1" backward>
// NONE-LABEL: fsdp.step @train
// NONE-NOT: [{?}, {?}, {?}]
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @first : tensor<4x4xf32> unit "first" init <normal, 0.5>
fsdp.param @in0 : tensor<4x8xf32> unit "u0" init <normal, 0.5> split [[], ["tensor"]]
fsdp.param @out0 : tensor<8x4xf32> unit "u0" init <normal, 0.5>
fsdp.param @in1 : tensor<4x8xf32> unit "u1" init <normal, 0.5> split [[], ["tensor"]]
fsdp.param @out1 : tensor<8x4xf32> unit "u1" init <normal, 0.5>
fsdp.param @last : tensor<4xf32> unit "last" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %first = fsdp.read @first : tensor<4x4xf32>
  %p = nn.einsum "bti,io->bto" %in, %first : (tensor<8x6x4xf32>, tensor<4x4xf32>) -> tensor<8x6x4xf32>
  %x0 = fsdp.constraint %p <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %in0 = fsdp.read @in0 : tensor<4x8xf32>
  %h0 = nn.einsum "bti,io->bto" %x0, %in0 {fsdp.structure = #fsdp.structure<"u0">} : (tensor<8x6x4xf32>, tensor<4x8xf32>) -> tensor<8x6x8xf32>
  %t0 = math.tanh %h0 {fsdp.structure = #fsdp.structure<"u0">} : tensor<8x6x8xf32>
  %out0 = fsdp.read @out0 : tensor<8x4xf32>
  %o0 = nn.einsum "bti,io->bto" %t0, %out0 {fsdp.structure = #fsdp.structure<"u0">} : (tensor<8x6x8xf32>, tensor<8x4xf32>) -> tensor<8x6x4xf32>
  %x1 = arith.addf %x0, %o0 {fsdp.structure = #fsdp.structure<"u0">} : tensor<8x6x4xf32>
  %in1 = fsdp.read @in1 : tensor<4x8xf32>
  %h1 = nn.einsum "bti,io->bto" %x1, %in1 {fsdp.structure = #fsdp.structure<"u1">} : (tensor<8x6x4xf32>, tensor<4x8xf32>) -> tensor<8x6x8xf32>
  %t1 = math.tanh %h1 {fsdp.structure = #fsdp.structure<"u1">} : tensor<8x6x8xf32>
  %out1 = fsdp.read @out1 : tensor<8x4xf32>
  %o1 = nn.einsum "bti,io->bto" %t1, %out1 {fsdp.structure = #fsdp.structure<"u1">} : (tensor<8x6x8xf32>, tensor<8x4xf32>) -> tensor<8x6x4xf32>
  %x2 = arith.addf %x1, %o1 {fsdp.structure = #fsdp.structure<"u1">} : tensor<8x6x4xf32>
  %last = fsdp.read @last : tensor<4xf32>
  %rows = nn.repeat "o -> b t o" %last {b = 8, t = 6} : tensor<4xf32> -> tensor<8x6x4xf32>
  %y = arith.mulf %x2, %rows : tensor<8x6x4xf32>
  %s = arith.mulf %y, %y : tensor<8x6x4xf32>
  %sum = nn.reduce sum "b t o ->" %s : tensor<8x6x4xf32> -> tensor<f64>
  %one = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %one
}
