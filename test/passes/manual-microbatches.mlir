// Samples that a region takes on other ranks than load them change ranks in each microbatch: those of one are a batch of whole samples.
// DEFINE: %{same} = %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run
// RUN: fsdp-opt %s --fsdp-to-local="batch-axes=node accumulate=2" 2> /dev/null | FileCheck %s
// RUN: %{same} %s %t batch-axes=node accumulate=2
// RUN: %{same} %s %t.full batch-axes=node accumulate=2 remat=full accumulate-reduce=last
// Over all axes of the batch, in the order of the mesh, in the other, and along one of them with copies along the other.
// RUN: sed 's/over \["fsdp"\]/over ["node", "fsdp"]/' %s > %t.copies.mlir
// RUN: %{same} %t.copies.mlir %t.copies batch-axes=node accumulate=2
// RUN: sed 's/over \["fsdp"\]/over ["node", "fsdp"]/; s/\[{"fsdp"}, {}\]/[{"node", "fsdp"}, {}]/g; s/tensor<8x/tensor<4x/g' %s > %t.all.mlir
// RUN: %{same} %t.all.mlir %t.all batch-axes=node accumulate=2
// RUN: sed 's/{"node", "fsdp"}/{"fsdp", "node"}/g' %t.all.mlir > %t.other.mlir
// RUN: %{same} %t.other.mlir %t.other batch-axes=node accumulate=2
// An axis of the batch before those of the region.
// RUN: sed 's/"node"=2, "fsdp"=2/"data"=2, "node"=2, "fsdp"=2/' %t.all.mlir > %t.behind.mlir
// RUN: %{same} %t.behind.mlir %t.behind batch-axes=node accumulate=2
// Each rank combines its own samples: they are the same with microbatches.
// RUN: sed 's/math.tanh %%q/math.tanh %%means/; s/^    %%t = /    %%mean = nn.reduce sum "b o -> o" %%q : tensor<8x4xf32> -> tensor<4xf32>\n    %%means = nn.repeat "o -> b o" %%mean {b = 8} : tensor<4xf32> -> tensor<8x4xf32>\n&/' %s > %t.sums.mlir
// RUN: %{same} %t.sums.mlir %t.sums batch-axes=node
// RUN: not fsdp-opt %t.sums.mlir --fsdp-to-local="batch-axes=node accumulate=2" 2>&1 | FileCheck %s --check-prefix=SUMS

// CHECK-LABEL: fsdp.segment @train
// CHECK: fsdp.collective_permute {{.*}} over ["node", "fsdp"]{{.*}} : tensor<2x4xf32>
// SUMS: error: {{.*}}depends on the samples of the whole batch
fsdp.mesh @mesh <["node"=2, "fsdp"=2]>
fsdp.param @w : tensor<4x4xf32> unit "w" init <normal, 0.5>
fsdp.step @train train optimizer <adamw, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<16x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  %y = fsdp.manual(%x, %w) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}, {}]>]
      out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32> {
  ^bb0(%own: tensor<8x4xf32>, %whole: tensor<4x4xf32>):
    %q = nn.einsum "bi,io->bo" %own, %whole : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %t = math.tanh %q : tensor<8x4xf32>
    fsdp.yield %t : tensor<8x4xf32>
  }
  %z = arith.mulf %y, %x : tensor<16x4xf32>
  %sum = nn.reduce sum "b o ->" %z : tensor<16x4xf32> -> tensor<f64>
  %weight = arith.constant dense<16.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
