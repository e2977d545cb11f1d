// Operands that are computed from inputs alone and whose positions an op needs whole (the ids of documents of an attention, the tokens in which spans end) are
// computed from whole inputs, which every rank has: no collective moves them, no warning and no remark names them. The numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-context-parallel 2>&1 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=LOCAL --implicit-check-not=warning --implicit-check-not="in another sharding" --implicit-check-not="fsdp.all_gather {{.*}}xi32"
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.remat accumulate=2 remat=full

// CHECK: %[[IN:.*]] = fsdp.input "tokens"
// CHECK: %[[TOKENS:.*]] = fsdp.constraint %[[IN]] <@mesh, [{?}, {"context"}]> : tensor<8x4xi32>
// CHECK: arith.cmpi eq, %[[IN]],
// CHECK: nn.embedding %{{.*}}, %[[TOKENS]]
// CHECK: nn.positions_since [5] in %[[IN]]
// An op that is elementwise needs a part only.
// CHECK: arith.cmpi ne, %[[TOKENS]],
// LOCAL: remark: attention over context=2: all-to-all
fsdp.mesh @mesh <["context"=2, "fsdp"=2]>
fsdp.param @table : tensor<11x8xf32> unit "u" init <normal, 0.5>
fsdp.param @wq : tensor<8x4x2xf32> unit "u" init <normal, 0.5>
fsdp.param @wo : tensor<4x2x8xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 11 : i64} : tensor<8x4xi32>
  %to = fsdp.input "targets" sample_dim 0 {fsdp.targets = 11 : i64} : tensor<8x4xi32>
  %end = arith.constant dense<3> : tensor<8x4xi32>
  %ends = arith.cmpi eq, %ids, %end : tensor<8x4xi32>
  %ones = arith.uitofp %ends : tensor<8x4xi1> to tensor<8x4xf32>
  %counts = nn.scan_sum "b t" along "t" %ones exclusive : tensor<8x4xf32>
  %documents = arith.fptosi %counts : tensor<8x4xf32> to tensor<8x4xi32>
  %table = fsdp.read @table : tensor<11x8xf32>
  %x = nn.embedding %table, %ids : tensor<11x8xf32>, tensor<8x4xi32> -> tensor<8x4x8xf32>
  %wq = fsdp.read @wq : tensor<8x4x2xf32>
  %q = nn.einsum "btd,dhk->bhtk" %x, %wq : (tensor<8x4x8xf32>, tensor<8x4x2xf32>) -> tensor<8x4x4x2xf32>
  %a, %l = nn.attention %q, %q, %q, %documents scale 0.5 causal documents : (tensor<8x4x4x2xf32>, tensor<8x4x4x2xf32>, tensor<8x4x4x2xf32>, tensor<8x4xi32>) -> (tensor<8x4x4x2xf32>, tensor<8x4x4xf32>)
  %wo = fsdp.read @wo : tensor<4x2x8xf32>
  %o = nn.einsum "bhtk,hkd->btd" %a, %wo : (tensor<8x4x4x2xf32>, tensor<4x2x8xf32>) -> tensor<8x4x8xf32>
  %again = fsdp.read @table : tensor<11x8xf32>
  %logits = nn.einsum "btd,vd->btv" %o, %again : (tensor<8x4x8xf32>, tensor<11x8xf32>) -> tensor<8x4x11xf32>
  %losses, %lse = nn.cross_entropy %logits, %to : tensor<8x4x11xf32>, tensor<8x4xi32> -> tensor<8x4xf32>, tensor<8x4xf32>
  %since = nn.positions_since [5] in %ids : tensor<8x4xi32> -> tensor<8x4xi32>
  %near = arith.cmpi slt, %since, %end : tensor<8x4xi32>
  %others = arith.cmpi ne, %ids, %end : tensor<8x4xi32>
  %both = arith.andi %near, %others : tensor<8x4xi1>
  %mask = arith.uitofp %both : tensor<8x4xi1> to tensor<8x4xf32>
  %kept = arith.mulf %losses, %mask : tensor<8x4xf32>
  %total = nn.reduce sum "b t ->" %kept : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %total over %weight
}
