// Attention of 8 heads in 2 groups over more ranks than groups: the groups are split over the part of the axis that they take, the heads of each over the
// rest. Keys and values are computed by all ranks of a group, so their gradients are partial sums over the rest: they join the sums of queries, and the weights' are
// summed where they are reduced. Where no part of the axis divides the groups, every rank computes all heads. The numbers are those of one device.
// RUN: sed 's/SIZE/4/' %s > %t.4.mlir && sed 's/SIZE/8/' %s > %t.8.mlir && sed 's/SIZE/3/' %s > %t.3.mlir
// RUN: fsdp-opt %t.4.mlir --fsdp-to-global | FileCheck %s
// RUN: fsdp-opt %t.4.mlir --fsdp-to-local | FileCheck %s --check-prefix=LOCAL
// RUN: fsdp-opt %t.3.mlir --fsdp-to-local -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.4.mlir %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.8.mlir %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.3.mlir %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.4.mlir %t strategy=zero1 accumulate=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.4.mlir %t precision=bf16 remat=full

// CHECK: fsdp.mesh @mesh <["fsdp"=2, "tensor:(1)2"=2, "tensor:(2)2"=2]>
// CHECK-LABEL: fsdp.step @train
// CHECK: nn.attention_grad {{.*}}[{"fsdp"}, {}, {"tensor:(1)2"}, {}], unreduced = {"tensor:(2)2"}

// LOCAL: fsdp.storage @u.flat.tensor : {{.*}}[#fsdp.member<@q at 0>, #fsdp.member<@o at 128>]
// LOCAL: fsdp.storage @"u.flat.tensor:(1)2" : {{.*}}[#fsdp.member<@k at 0>, #fsdp.member<@v at 64>]
// LOCAL: nn.attention "b t h d" {{.*}} : (tensor<2x5x2x4xf32>, tensor<2x5x1x4xf32>, tensor<2x5x1x4xf32>)
// LOCAL: fsdp.all_reduce sum {{.*}} over ["tensor:(1)2", "tensor:(2)2"] : tensor<2x5x16xf32>
// LOCAL: fsdp.reduce_scatter {{.*}} over ["fsdp"] {fsdp.reduces = @"u.flat.tensor:(1)2"
// LOCAL-NEXT: fsdp.all_reduce sum {{.*}} over ["tensor:(2)2"] {fsdp.reduces = @"u.flat.tensor:(1)2"

// WHOLE: remark: 'nn.attention' takes {{.*}} in another sharding: all_gather over ["tensor"]
fsdp.mesh @mesh <["fsdp"=2, "tensor"=SIZE]>
fsdp.param @q : tensor<8x4x16xf32> unit "u" init <normal, 0.5> split [["tensor"], [], []]
fsdp.param @k : tensor<2x4x16xf32> unit "u" init <normal, 0.5>
fsdp.param @v : tensor<2x4x16xf32> unit "u" init <normal, 0.5>
fsdp.param @o : tensor<16x8x4xf32> unit "u" init <normal, 0.5>
fsdp.param @i : tensor<16x16xf32> unit "e" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.003> {
  %x0 = fsdp.input "x" sample_dim 0 : tensor<4x5x16xf32>
  %wi = fsdp.read @i : tensor<16x16xf32>
  %x = nn.einsum "bsd,de->bse" %x0, %wi : (tensor<4x5x16xf32>, tensor<16x16xf32>) -> tensor<4x5x16xf32>
  %wq = fsdp.read @q : tensor<8x4x16xf32>
  %wk = fsdp.read @k : tensor<2x4x16xf32>
  %wv = fsdp.read @v : tensor<2x4x16xf32>
  %wo = fsdp.read @o : tensor<16x8x4xf32>
  %q = nn.einsum "bsd,hkd->bshk" %x, %wq : (tensor<4x5x16xf32>, tensor<8x4x16xf32>) -> tensor<4x5x8x4xf32> loc("q")
  %k = nn.einsum "bsd,hkd->bshk" %x, %wk : (tensor<4x5x16xf32>, tensor<2x4x16xf32>) -> tensor<4x5x2x4xf32> loc("k")
  %v = nn.einsum "bsd,hkd->bshk" %x, %wv : (tensor<4x5x16xf32>, tensor<2x4x16xf32>) -> tensor<4x5x2x4xf32> loc("v")
  %qr = nn.rope %q dim 1 theta 1.0e+04 : tensor<4x5x8x4xf32>
  %kr = nn.rope %k dim 1 theta 1.0e+04 : tensor<4x5x2x4xf32>
  %a, %l = nn.attention "b t h d" %qr, %kr, %v scale 0.5 causal : (tensor<4x5x8x4xf32>, tensor<4x5x2x4xf32>, tensor<4x5x2x4xf32>) -> (tensor<4x5x8x4xf32>, tensor<4x8x5xf32>)
  %y = nn.einsum "bshk,dhk->bsd" %a, %wo : (tensor<4x5x8x4xf32>, tensor<16x8x4xf32>) -> tensor<4x5x16xf32>
  %z = arith.addf %y, %x : tensor<4x5x16xf32>
  %s = arith.mulf %z, %z : tensor<4x5x16xf32>
  %sum = nn.reduce sum "b s o ->" %s : tensor<4x5x16xf32> -> tensor<f64>
  %one = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %one
}
