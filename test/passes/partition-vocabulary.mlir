// A vocabulary of 13 over 2 ranks of "tensor": 7 rows and classes each, the last of which is padding on the second rank.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>/dev/null | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-global=precision=bf16 --fsdp-partition 2>/dev/null | FileCheck %s --check-prefix=BF16
// RUN: sed 's/\["fsdp"=2, "tensor"=2\]/["fsdp"=4, "tensor"=1]/' %s | fsdp-opt --fsdp-to-global --fsdp-partition 2>/dev/null | FileCheck %s --check-prefix=WHOLE
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition --fsdp-chunk-loss=chunks=2 2>/dev/null | FileCheck %s --check-prefix=CHUNKS
// Of three classes each rank has labels and ids in the draws of same_numbers.py.
// RUN: sed 's/13x/3x/g; s/x13x/x3x/g' %s > %t.small.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.small.mlir %t.numbers
// RUN: sed 's/"tensor"=2/"tensor"=4/; s/"fsdp"=2/"fsdp"=1/' %t.small.mlir > %t.four.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.four.mlir %t.four
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.small.mlir %t.chunks loss-chunks=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.small.mlir %t.accumulate accumulate=2

// Each rank looks up the ids of its own rows; the rows of all are summed.
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[IDS:.*]] = fsdp.input "ids"
// CHECK: %[[LABELS:.*]] = fsdp.input "labels"
// CHECK: %[[ROWS:.*]] = fsdp.view %{{.*}} -> tensor<7x8xf32>
// CHECK-NEXT: %[[OWN:.*]] = fsdp.shard_indices %[[IDS]] of 13 over ["tensor"] : tensor<2x3xi32>
// CHECK-NEXT: %[[PART:.*]] = nn.embedding partial %[[ROWS]], %[[OWN]] : tensor<7x8xf32>, tensor<2x3xi32> -> tensor<2x3x8xf32>
// CHECK-NEXT: fsdp.all_reduce sum %[[PART]] over ["tensor"] : tensor<2x3x8xf32>
// The logits are never gathered: of each row one maximum and two sums are exchanged.
// CHECK: %[[LOGITS:.*]] = nn.einsum "btd,vd->btv" {{.*}} -> tensor<2x3x7xf32>
// CHECK-NEXT: %[[CLASS:.*]] = fsdp.shard_indices %[[LABELS]] of 13 over ["tensor"] : tensor<2x3xi32>
// CHECK-NEXT: %[[COUNT:.*]] = fsdp.shard_size of 13 over ["tensor"]
// CHECK-NEXT: %[[MAX:.*]], %[[SUM:.*]], %[[PICKED:.*]] = nn.partial_cross_entropy %[[LOGITS]], %[[CLASS]] of %[[COUNT]] : tensor<2x3x7xf32>, tensor<2x3xi32> -> tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// CHECK-NEXT: %[[TOP:.*]] = fsdp.all_reduce max %[[MAX]] over ["tensor"] : tensor<2x3xf32>
// CHECK-NEXT: %[[SHIFT:.*]] = arith.subf %[[MAX]], %[[TOP]]
// CHECK-NEXT: %[[SCALE:.*]] = math.exp %[[SHIFT]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[SCALE]]
// CHECK-NEXT: %[[ALL:.*]] = fsdp.all_reduce sum %[[SCALED]] over ["tensor"] : tensor<2x3xf32>
// CHECK-NEXT: %[[LABEL:.*]] = fsdp.all_reduce sum %[[PICKED]] over ["tensor"] : tensor<2x3xf32>
// CHECK-NEXT: %[[LOG:.*]] = math.log %[[ALL]]
// CHECK-NEXT: %[[LSE:.*]] = arith.addf %[[LOG]], %[[TOP]]
// CHECK-NEXT: arith.subf %[[LSE]], %[[LABEL]]
// The cotangent of the logits takes no collective, and no other mask: its padding is 0.
// CHECK-NOT: fsdp.all_reduce
// CHECK-NOT: fsdp.mask_padding
// CHECK: %[[D:.*]] = nn.cross_entropy_grad %[[LOGITS]], %[[CLASS]], %[[LSE]], %{{.*}} of %[[COUNT]]
// CHECK-NOT: fsdp.mask_padding
// CHECK: nn.einsum "btv,vd->btd" %[[D]]
// CHECK: nn.einsum "btd,btv->vd" %{{.*}}, %[[D]]
// The constraint on the table is one on its gradient, too, but does not complete the sum.
// CHECK: %[[G:.*]] = nn.embedding_grad partial %[[OWN]], %{{.*}} : tensor<2x3xi32>, tensor<2x3x8xf32> -> tensor<7x8xf32>
// CHECK-NEXT: %[[F:.*]] = fsdp.flatten %[[G]]
// CHECK-NEXT: fsdp.reduce_scatter %[[F]] dim 0 over ["fsdp"]
// CHECK-LABEL: fsdp.segment @evaluate
// CHECK: nn.embedding partial
// CHECK: nn.partial_cross_entropy
// CHECK-NOT: tensor<2x3x13xf32>

// Everything of a row is f32, whatever the logits are.
// BF16: nn.partial_cross_entropy {{.*}} : tensor<2x3x7xbf16>, tensor<2x3xi32> -> tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
// BF16: nn.cross_entropy_grad {{.*}} of %{{.*}} : tensor<2x3x7xbf16>

// What no rank shares is as it was.
// WHOLE-LABEL: fsdp.segment @train
// WHOLE-NOT: {{fsdp.shard_|partial|of %}}
// WHOLE: nn.embedding %{{.*}}, %{{.*}} : tensor<13x8xf32>
// WHOLE: nn.cross_entropy %{{.*}}, %{{.*}} : tensor<1x3x13xf32>
// WHOLE: nn.cross_entropy_grad %{{.*}} : tensor<1x3x13xf32>
// WHOLE: nn.embedding_grad %{{.*}} -> tensor<13x8xf32>

// A chunk of the rows has collectives of its own.
// CHUNKS-LABEL: fsdp.segment @train
// CHUNKS-COUNT-2: fsdp.all_reduce max {{.*}} : tensor<1x3xf32>
// CHUNKS-NOT: fsdp.all_reduce max
// CHUNKS-LABEL: fsdp.segment @evaluate
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @embed.weight : tensor<13x8xf32> unit "embed" init <normal, 1.0>
fsdp.param @head.weight : tensor<13x8xf32> unit "head" init <normal, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<4x3xi32>
  %labels = fsdp.input "labels" sample_dim 0 : tensor<4x3xi32>
  %table = fsdp.read @embed.weight : tensor<13x8xf32>
  %rows = fsdp.constraint %table <@mesh, [{"tensor"}, {}]> : tensor<13x8xf32>
  %x = nn.embedding %rows, %ids : tensor<13x8xf32>, tensor<4x3xi32> -> tensor<4x3x8xf32>
  %h = math.tanh %x : tensor<4x3x8xf32>
  %head = fsdp.read @head.weight : tensor<13x8xf32>
  %y = nn.einsum "btd,vd->btv" %h, %head : (tensor<4x3x8xf32>, tensor<13x8xf32>) -> tensor<4x3x13xf32>
  %logits = fsdp.constraint %y <@mesh, [{?}, {?}, {"tensor"}]> : tensor<4x3x13xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels
      : tensor<4x3x13xf32>, tensor<4x3xi32> -> tensor<4x3xf32>, tensor<4x3xf32>
  %sum = nn.reduce sum "b t ->" %loss : tensor<4x3xf32> -> tensor<f64>
  %count = arith.constant dense<12.0> : tensor<f64>
  fsdp.loss %sum over %count
}
