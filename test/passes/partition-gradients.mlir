// Gradients that are no simple partial sums: a parameter used twice is reduced once; a penalty on parameters is whole
// on every rank, so that it is cut, not scattered; a frozen parameter stands in a storage of its own.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>&1 | %{plain} | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.flat
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.ddp strategy=ddp
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.dimension "shard=*:0"

// CHECK: remark: the gradients of unit 'penalized' are not all partial sums over its axes: each is reduced whole, then split
// CHECK: fsdp.storage @tied.flat : tensor<16xf32> flat over ["fsdp"] states ["momentum"] members [#fsdp.member<@tied at 0>]
// CHECK: fsdp.storage @tied.frozen.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@shift at 0>]
// CHECK: fsdp.storage @penalized.flat
// CHECK-LABEL: fsdp.segment @train
// CHECK: fsdp.all_slice %{{.*}} dim 0 over ["fsdp"] : tensor<48xf32> -> tensor<16xf32>
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<5x5xf32>
// CHECK: %[[FLAT:.*]] = fsdp.flatten %[[SUM]] : (tensor<5x5xf32>) -> tensor<25xf32>
// CHECK-NEXT: fsdp.reduce_scatter %[[FLAT]]
// CHECK-NOT: fsdp.reduce_scatter
// CHECK-NOT: fsdp.optimizer_step {{.*}} @tied.frozen
// CHECK-LABEL: fsdp.segment @evaluate
fsdp.mesh @mesh <["fsdp"=3]>
fsdp.param @tied : tensor<5x5xf32> unit "tied" init <normal, 0.5>
fsdp.param @shift : tensor<5xf32> unit "tied" init <normal, 0.5> frozen
fsdp.param @v : tensor<5xf32> unit "penalized" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.05, momentum = 0.5> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
  %w = fsdp.read @tied : tensor<5x5xf32>
  %s = fsdp.read @shift : tensor<5xf32>
  %v = fsdp.read @v : tensor<5xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x5xf32>, tensor<5x5xf32>) -> tensor<10x5xf32>
  %r = nn.repeat "o -> b o" %s : tensor<5xf32> -> tensor<10x5xf32>
  %p = arith.addf %z, %r : tensor<10x5xf32>
  %h = math.tanh %p : tensor<10x5xf32>
  %y = nn.einsum "bo,io->bi" %h, %w : (tensor<10x5xf32>, tensor<5x5xf32>) -> tensor<10x5xf32>
  %u = nn.einsum "bi,i->b" %y, %v : (tensor<10x5xf32>, tensor<5xf32>) -> tensor<10xf32>
  %q = arith.mulf %u, %u : tensor<10xf32>
  %data = nn.reduce sum "b ->" %q : tensor<10xf32> -> tensor<f64>
  %vv = arith.mulf %v, %v : tensor<5xf32>
  %penalty = nn.reduce sum "i ->" %vv : tensor<5xf32> -> tensor<f64>
  %sum = arith.addf %data, %penalty : tensor<f64>
  %weight = arith.constant dense<10.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
