// Where a sharding needs a part of an axis, the mesh is cut: the parts are axes, ranks keep their numbers, and what named
// the axis names its parts.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/named.mlir --fsdp-propagate | FileCheck %s --check-prefix=NAMED
// RUN: fsdp-opt %t/found.mlir --fsdp-propagate | FileCheck %s --check-prefix=FOUND
// RUN: fsdp-opt %t/placed.mlir "--fsdp-shard-parameters=shard=w:fsdp:(2)2,_@flat(fsdp:(1)2)" --fsdp-reshard-after-forward=when=never | FileCheck %s --check-prefix=PLACED
// RUN: fsdp-opt %t/kept.mlir --fsdp-shard-parameters --fsdp-reshard-after-forward=when=axes:fsdp:(1)2 | FileCheck %s --check-prefix=KEPT
// RUN: fsdp-opt %t/size-one.mlir --fsdp-shard-parameters --fsdp-propagate | FileCheck %s --check-prefix=ONE
// RUN: fsdp-opt %t/again.mlir --fsdp-propagate | FileCheck %s --check-prefix=AGAIN
// RUN: fsdp-opt %t/no-cut.mlir --fsdp-propagate=accumulate=4 | FileCheck %s --check-prefix=MICRO

//--- named.mlir
// By a constraint: the devices stay in their order; another constraint names the axis as a whole, an input splits its samples over it.
// NAMED: fsdp.mesh @mesh <["data"=2, "fsdp:(1)2"=2, "fsdp:(2)2"=2], devices = [0, 1, 2, 3, 7, 6, 5, 4]>
// NAMED: fsdp.input "x" {{.*}}[{"data", "fsdp:(1)2", "fsdp:(2)2"}, {}]
// NAMED: fsdp.constraint {{.*}} <@mesh, [{"data"}, {"fsdp:(2)2"}]>
// NAMED: fsdp.constraint {{.*}} <@mesh, [{}, {"fsdp:(1)2", "fsdp:(2)2"}]>
fsdp.mesh @mesh <["data"=2, "fsdp"=4], devices = [0, 1, 2, 3, 7, 6, 5, 4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x8xf32>
  %y = fsdp.constraint %x <@mesh, [{"data"}, {"fsdp:(2)2"}]> : tensor<8x8xf32>
  %z = fsdp.constraint %x <@mesh, [{}, {"fsdp"}]> : tensor<8x8xf32>
}

//--- found.mlir
// By propagation: 2 heads of 4 on 4 ranks take the first part of the axis. The width has the rest of it where it stands alone.
// FOUND: fsdp.mesh @mesh <["tensor:(1)2"=2, "tensor:(2)2"=2]>
// FOUND: fsdp.constraint {{.*}} <@mesh, [{}, {"tensor:(1)2", "tensor:(2)2"}]>
// FOUND: nn.rearrange "b (h d) -> b h d" {{.*}}[{}, {"tensor:(1)2"}, {}]
fsdp.mesh @mesh <["tensor"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x6xf32>
  %y = fsdp.constraint %x <@mesh, [{}, {"tensor"}]> : tensor<4x6xf32>
  %z = nn.rearrange "b (h d) -> b h d" %y {h = 2} : tensor<4x6xf32> -> tensor<4x2x3xf32>
}

//--- placed.mlir
// By `--shard`, in compute and in storage; the split of another parameter, which names the axis, follows.
// PLACED: fsdp.mesh @mesh <["fsdp:(1)2"=2, "fsdp:(2)2"=2]>
// PLACED: fsdp.param @w {{.*}}<flat over ["fsdp:(1)2"], {{.*}}reshard = never, compute = <@mesh, [{"fsdp:(2)2"}, {}]>>
// PLACED: fsdp.param @v {{.*}}<flat over ["fsdp:(1)2", "fsdp:(2)2"], {{.*}}reshard = never>
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<8x8xf32> unit "u" init <constant, 0.0>
fsdp.param @v : tensor<8x8xf32> unit "v" init <constant, 0.0>

//--- kept.mlir
// KEPT: fsdp.mesh @mesh <["fsdp:(1)2"=2, "fsdp:(2)4"=4]>
// KEPT: fsdp.param @w {{.*}}<flat over ["fsdp:(1)2", "fsdp:(2)4"], {{.*}}reshard = axes ["fsdp:(1)2"]>
fsdp.mesh @mesh <["fsdp"=8]>
fsdp.param @w : tensor<8x8xf32> unit "u" init <constant, 0.0>

//--- size-one.mlir
// Parts of an axis of one position split nothing, so that a model may name them on any mesh.
// ONE: fsdp.mesh @mesh <["fsdp"=2, "tensor"=1]>
// ONE: fsdp.param @w {{.*}} placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// ONE: fsdp.constraint {{.*}}{fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
fsdp.mesh @mesh <["fsdp"=2, "tensor"=1]>
fsdp.param @w : tensor<8x8xf32> unit "u" init <constant, 0.0> split [["tensor:(2)2"], ["tensor:(1)2"]]
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x8xf32>
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {"tensor:(1)2"}]> priorities [0, 1] : tensor<8x8xf32>
}

//--- again.mlir
// A mesh that is in parts already is cut further.
// AGAIN: fsdp.mesh @mesh <["tensor:(1)2"=2, "tensor:(2)2"=2, "tensor:(4)2"=2]>
// AGAIN: fsdp.constraint {{.*}} <@mesh, [{}, {"tensor:(2)2", "tensor:(4)2"}]>
// AGAIN: fsdp.constraint {{.*}} <@mesh, [{}, {"tensor:(4)2"}]>
fsdp.mesh @mesh <["tensor:(1)2"=2, "tensor:(2)4"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
  %y = fsdp.constraint %x <@mesh, [{}, {"tensor:(2)4"}]> : tensor<4x8xf32>
  %z = fsdp.constraint %x <@mesh, [{}, {"tensor:(4)2"}]> : tensor<4x8xf32>
}

//--- no-cut.mlir
// Microbatches follow one another: their axis is not cut, though 6 samples of 2 rows merge.
// MICRO: fsdp.mesh @mesh <["fsdp"=1, "microbatch"=4]>
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<6x2xf32>
  %y = nn.rearrange "b s -> (b s)" %x : tensor<6x2xf32> -> tensor<12xf32>
}
