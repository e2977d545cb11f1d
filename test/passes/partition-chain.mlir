// A chain of three units, each with a weight and a bias, with cross-entropy, a metric, AdamW and clipping.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-global=reshard-after-forward=never --fsdp-partition | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %s --fsdp-to-global=strategy=ddp --fsdp-partition | FileCheck %s --check-prefix=DDP
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.flat
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.ddp strategy=ddp
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.never reshard-after-forward=never
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.mixed "shard=*.bias:replicated;fc3.weight:1"
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.threshold min-shard-size=16

// Forward gathers each unit once. The last is kept across the turn; backward gathers the middle one again
// and the first not at all, since the input needs no gradient. Each unit is reduced when its last gradient is complete.
// CHECK-LABEL: fsdp.segment @train
// CHECK: fsdp.load @fc1.flat
// CHECK-NEXT: fsdp.all_gather
// CHECK: fsdp.load @fc2.flat
// CHECK-NEXT: fsdp.all_gather
// CHECK: fsdp.load @fc3.flat
// CHECK-NEXT: fsdp.all_gather
// CHECK-NOT: fsdp.all_gather
// CHECK: fsdp.reduce_scatter {{.*}} : tensor<170xf32> -> tensor<96xf32>
// CHECK: fsdp.load @fc2.flat
// CHECK-NEXT: fsdp.all_gather
// CHECK-NOT: fsdp.all_gather
// CHECK: fsdp.reduce_scatter {{.*}} : tensor<272xf32> -> tensor<144xf32>
// CHECK: fsdp.reduce_scatter {{.*}} : tensor<144xf32> -> tensor<80xf32>
// CHECK-NOT: fsdp.reduce_scatter
// CHECK-NOT: fsdp.all_gather
// CHECK-LABEL: fsdp.segment @evaluate
// CHECK-COUNT-3: fsdp.all_gather
// CHECK-NOT: fsdp.all_gather

// Units that never reshard are gathered once a step.
// NEVER-LABEL: fsdp.segment @train
// NEVER-COUNT-3: fsdp.all_gather
// NEVER-NOT: fsdp.all_gather
// NEVER-LABEL: fsdp.segment @evaluate

// Replicated parameters are not gathered; their gradients are summed everywhere, joined per unit.
// DDP: fsdp.storage @fc1.replicated : tensor<144xf32> replicated over []
// DDP-LABEL: fsdp.segment @train
// DDP-NOT: fsdp.all_gather
// DDP: fsdp.all_reduce sum {{.*}} : tensor<170xf32>
// DDP: fsdp.all_reduce sum {{.*}} : tensor<272xf32>
// DDP: fsdp.all_reduce sum {{.*}} : tensor<144xf32>
// The norm of what every rank has is not summed over ranks.
// DDP: fsdp.square_sum
// DDP-NOT: fsdp.all_reduce
// DDP: math.sqrt
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @fc1.weight : tensor<8x16xf32> unit "fc1" init <normal, 2.0e-02>
fsdp.param @fc1.bias : tensor<16xf32> unit "fc1" init <constant, 0.0>
fsdp.param @fc2.weight : tensor<16x16xf32> unit "fc2" init <normal, 2.0e-02>
fsdp.param @fc2.bias : tensor<16xf32> unit "fc2" init <constant, 0.0>
fsdp.param @fc3.weight : tensor<16x10xf32> unit "fc3" init <normal, 2.0e-02>
fsdp.param @fc3.bias : tensor<10xf32> unit "fc3" init <constant, 0.0>
fsdp.step @train train optimizer <adamw, lr = 1.0e-3, weight_decay = 0.01, clip = 1.0> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x8xf32>
  %label = fsdp.input "label" sample_dim 0 : tensor<10xi32>
  %w1 = fsdp.read @fc1.weight : tensor<8x16xf32>
  %b1 = fsdp.read @fc1.bias : tensor<16xf32>
  %w2 = fsdp.read @fc2.weight : tensor<16x16xf32>
  %b2 = fsdp.read @fc2.bias : tensor<16xf32>
  %w3 = fsdp.read @fc3.weight : tensor<16x10xf32>
  %b3 = fsdp.read @fc3.bias : tensor<10xf32>
  %z1 = nn.einsum "bi,io->bo" %x, %w1 : (tensor<10x8xf32>, tensor<8x16xf32>) -> tensor<10x16xf32>
  %r1 = nn.repeat "o -> b o" %b1 : tensor<16xf32> -> tensor<10x16xf32>
  %p1 = arith.addf %z1, %r1 : tensor<10x16xf32>
  %h1 = math.tanh %p1 : tensor<10x16xf32>
  %z2 = nn.einsum "bi,io->bo" %h1, %w2 : (tensor<10x16xf32>, tensor<16x16xf32>) -> tensor<10x16xf32>
  %r2 = nn.repeat "o -> b o" %b2 : tensor<16xf32> -> tensor<10x16xf32>
  %p2 = arith.addf %z2, %r2 : tensor<10x16xf32>
  %h2 = math.tanh %p2 : tensor<10x16xf32>
  %z3 = nn.einsum "bi,io->bo" %h2, %w3 : (tensor<10x16xf32>, tensor<16x10xf32>) -> tensor<10x10xf32>
  %r3 = nn.repeat "o -> b o" %b3 : tensor<10xf32> -> tensor<10x10xf32>
  %p3 = arith.addf %z3, %r3 : tensor<10x10xf32>
  %l, %lse = nn.cross_entropy %p3, %label : tensor<10x10xf32>, tensor<10xi32> -> tensor<10xf32>, tensor<10xf32>
  %sum = nn.reduce sum "b ->" %l : tensor<10xf32> -> tensor<f64>
  %weight = arith.constant dense<10.0> : tensor<f64>
  fsdp.loss %sum over %weight
  %am = nn.argmax %p3 : tensor<10x10xf32> -> tensor<10xi32>
  %eq = arith.cmpi eq, %am, %label : tensor<10xi32>
  %hit = arith.uitofp %eq : tensor<10xi1> to tensor<10xf32>
  %hits = nn.reduce sum "b ->" %hit : tensor<10xf32> -> tensor<f64>
  fsdp.metric "accuracy" %hits over %weight
}
