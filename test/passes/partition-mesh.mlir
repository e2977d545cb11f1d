// Two axes: parameters are stored over one and replicated over the other (hybrid sharding); gradients are
// scattered over the first, then summed over the second. A third axis, tensor, takes no samples:
// a parameter is split over it in compute, and one that is not in a storage beside it.
// RUN: fsdp-opt %s --fsdp-to-global=strategy=hsdp --fsdp-partition | %{plain} | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.hsdp strategy=hsdp
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.mixed "shard=b:replicated;w:0"
// RUN: sed 's/\["data"=2, "fsdp"=3\]/["tensor"=2, "fsdp"=3, "data"=2]/; s/init <normal, 0.5>/init <normal, 0.5> split [["tensor"], []]/' %s > %t.3d.mlir
// RUN: fsdp-opt %t.3d.mlir --fsdp-to-global --fsdp-partition | %{plain} | FileCheck %s --check-prefix=TENSOR
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.3d.mlir %t.3d
// What one rank stores is whole: it is read in place, or cast, and its gradient stays where it is.
// RUN: sed 's/"fsdp"=3/"fsdp"=1/' %s > %t.one.mlir
// RUN: fsdp-opt %t.one.mlir --fsdp-to-global --fsdp-partition | %{plain} | FileCheck %s --check-prefix=ONE --implicit-check-not=all_gather --implicit-check-not=reduce_scatter
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.one.mlir %t.one
// RUN: fsdp-opt %t.one.mlir --fsdp-to-global=precision=bf16 --fsdp-partition | %{plain} | FileCheck %s --check-prefix=CAST --implicit-check-not=all_gather

// CHECK: fsdp.storage @u.flat : tensor<16xf32> flat over ["fsdp"]
// CHECK-LABEL: fsdp.segment @train
// CHECK: fsdp.input "x" sample_dim 0 shard_of 10 over ["data", "fsdp"] : tensor<2x6xf32>
// CHECK: fsdp.all_gather %{{.*}} dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<21xf32>
// CHECK: fsdp.mask_padding %{{.*}} dim 0 of 10 over ["data", "fsdp"]
// CHECK: %[[S:.*]] = fsdp.reduce_scatter %{{.*}} dim 0 over ["fsdp"] : tensor<21xf32> -> tensor<16xf32>
// CHECK-NEXT: %[[G:.*]] = fsdp.all_reduce sum %[[S]] over ["data"] : tensor<16xf32>
// CHECK: fsdp.all_reduce sum %{{.*}} over ["data", "fsdp"] : tensor<f64>
// CHECK: %[[Q:.*]] = fsdp.square_sum %[[G]]
// CHECK-NEXT: fsdp.all_reduce sum %[[Q]] over ["fsdp"] : tensor<f64>

// ONE: %[[P:.*]] = fsdp.load @u.flat "parameter" : tensor<32xf32>
// ONE-NEXT: fsdp.view %[[P]] at 0 : tensor<32xf32> -> tensor<6x3xf32>
// ONE: %[[G:.*]] = fsdp.flatten {{.*}} -> tensor<32xf32>
// ONE-NEXT: %[[S:.*]] = fsdp.all_reduce sum %[[G]] over ["data"] : tensor<32xf32>
// ONE: %[[Q:.*]] = fsdp.square_sum %[[S]]
// ONE-NEXT: math.sqrt %[[Q]]

// CAST: %[[P:.*]] = fsdp.load @u.flat "parameter" : tensor<{{.*}}xf32>
// CAST-NEXT: %[[C:.*]] = arith.truncf %[[P]]
// CAST-NEXT: fsdp.view %[[C]] at 0

// TENSOR: fsdp.storage @u.flat.tensor : tensor<16xf32> flat over ["fsdp"] states [{{.*}}] members [#fsdp.member<@w at 0>]
// TENSOR: fsdp.storage @u.flat : tensor<16xf32> flat over ["fsdp"] states [{{.*}}] members [#fsdp.member<@b at 0>]
// TENSOR: fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp", "data"] : tensor<2x6xf32>
// TENSOR: nn.einsum "bi,io->bo" %{{.*}} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
// TENSOR: fsdp.all_reduce sum %{{.*}} over ["tensor"] : tensor<2x3xf32>
fsdp.mesh @mesh <["data"=2, "fsdp"=3]>
fsdp.param @w : tensor<6x3xf32> unit "u" init <normal, 0.5>
fsdp.param @b : tensor<3xf32> unit "u" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1, momentum = 0.9> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %w = fsdp.read @w : tensor<6x3xf32>
  %b = fsdp.read @b : tensor<3xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x6xf32>, tensor<6x3xf32>) -> tensor<10x3xf32>
  %r = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<10x3xf32>
  %p = arith.addf %z, %r : tensor<10x3xf32>
  %e = arith.subf %p, %y : tensor<10x3xf32>
  %q = arith.mulf %e, %e : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %q : tensor<10x3xf32> -> tensor<f64>
  %weight = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
