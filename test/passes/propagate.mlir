// RUN: split-file %s %t
// RUN: fsdp-opt %t/layer.mlir --fsdp-propagate | FileCheck %s --check-prefix=LAYER
// RUN: fsdp-opt %t/mesh.mlir --fsdp-propagate | FileCheck %s --check-prefix=MESH
// RUN: fsdp-opt %t/last.mlir --fsdp-propagate | FileCheck %s --check-prefix=LAST
// RUN: fsdp-opt %t/groups.mlir --fsdp-propagate | FileCheck %s --check-prefix=GROUPS
// RUN: fsdp-opt %t/constraint.mlir --fsdp-propagate | FileCheck %s --check-prefix=CONSTRAINT
// RUN: fsdp-opt %t/partial.mlir --fsdp-propagate | FileCheck %s --check-prefix=PARTIAL
// RUN: fsdp-opt %t/otherwise-split.mlir --fsdp-propagate | FileCheck %s --check-prefix=OTHERWISE
// RUN: fsdp-opt %t/layer.mlir --fsdp-propagate | fsdp-opt --fsdp-propagate | FileCheck %s --check-prefix=LAYER

//--- layer.mlir
// The batch's split goes forward from the input through the layer and backward into the broadcast beside it;
// parameters are whole; what sums over the batch leaves partial sums.
// LAYER: fsdp.input {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// LAYER: fsdp.read @w {{.*}} [#fsdp.sharding<@mesh, [{}, {}]>]
// LAYER: fsdp.read @b {{.*}} [#fsdp.sharding<@mesh, [{}]>]
// LAYER: nn.einsum {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// LAYER: nn.repeat {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// LAYER: arith.addf {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// LAYER: nn.cross_entropy {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}]>, #fsdp.sharding<@mesh, [{"fsdp"}]>]
// LAYER: nn.reduce {{.*}} [#fsdp.sharding<@mesh, [], unreduced = {"fsdp"}>]
// LAYER: arith.constant {fsdp.shardings = [#fsdp.sharding<@mesh, []>]}
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<6x3xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<3xf32> unit "u" init <constant, 0.0>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %label = fsdp.input "label" sample_dim 0 : tensor<10xi32>
  %w = fsdp.read @w : tensor<6x3xf32>
  %b = fsdp.read @b : tensor<3xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x6xf32>, tensor<6x3xf32>) -> tensor<10x3xf32>
  %r = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<10x3xf32>
  %y = arith.addf %z, %r : tensor<10x3xf32>
  %l, %lse = nn.cross_entropy %y, %label : tensor<10x3xf32>, tensor<10xi32> -> tensor<10xf32>, tensor<10xf32>
  %sum = nn.reduce sum "b ->" %l : tensor<10xf32> -> tensor<f64>
  %weight = arith.constant dense<10.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

//--- mesh.mlir
// The batch is split over the axes that are for it, in the mesh's order; tensor is for a parameter.
// MESH: fsdp.input {{.*}} [#fsdp.sharding<@mesh, [{"fsdp", "data"}, {}]>]
// MESH: nn.reduce {{.*}} [#fsdp.sharding<@mesh, [{}], unreduced = {"data", "fsdp"}>]
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2, "data"=2]>
fsdp.param @w : tensor<6xf32> unit "u" init <constant, 0.0> split [["tensor"]]
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %y = nn.reduce sum "b i -> i" %x : tensor<10x6xf32> -> tensor<6xf32>
}

//--- last.mlir
// The samples may be counted by any dimension.
// LAST: fsdp.input {{.*}} [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]
// LAST: nn.einsum "ib,io->ob" {{.*}} [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]
// LAST: nn.rearrange "o b -> b o" {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// LAST: nn.argmax {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}]>]
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<6x3xf32> unit "u" init <constant, 0.0>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 1 : tensor<6x10xf32>
  %w = fsdp.read @w : tensor<6x3xf32>
  %z = nn.einsum "ib,io->ob" %x, %w : (tensor<6x10xf32>, tensor<6x3xf32>) -> tensor<3x10xf32>
  %t = nn.rearrange "o b -> b o" %z : tensor<3x10xf32> -> tensor<10x3xf32>
  %a = nn.argmax %t : tensor<10x3xf32> -> tensor<10xi32>
}

//--- groups.mlir
// The major factor of a merged dimension is split where it divides; where it does not, or is not major, the
// value is whole. An op that needs a whole dimension does not pass its split on.
// GROUPS: nn.rearrange "b s -> (b s)" {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}]>]
// GROUPS: nn.rearrange "b s -> (s b)" {{.*}} [#fsdp.sharding<@mesh, [{}]>]
// GROUPS: nn.rearrange "c s -> (c s)" {{.*}} [#fsdp.sharding<@mesh, [{}]>]
// GROUPS: nn.slice {{.*}} [#fsdp.sharding<@mesh, [{}, {}]>]
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x3xf32>
  %m = nn.rearrange "b s -> (b s)" %x : tensor<8x3xf32> -> tensor<24xf32>
  %n = nn.rearrange "b s -> (s b)" %x : tensor<8x3xf32> -> tensor<24xf32>
  %u = fsdp.input "u" sample_dim 0 : tensor<10x3xf32>
  %v = nn.rearrange "c s -> (c s)" %u : tensor<10x3xf32> -> tensor<30xf32>
  %t = fsdp.input "t" sample_dim 1 : tensor<3x8xf32>
  %a = nn.slice %t dim 1 start 0 : tensor<3x8xf32> -> tensor<3x4xf32>
}

//--- constraint.mlir
// A constraint holds on its result, closed dimensions as they are; open ones follow.
// CONSTRAINT: math.tanh {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// CONSTRAINT: fsdp.constraint {{.*}} [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]
// CONSTRAINT: math.exp {{.*}} [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]
// CONSTRAINT: fsdp.constraint {{.*}} [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
  %y = math.tanh %x : tensor<8x6xf32>
  %c = fsdp.constraint %y <@mesh, [{}, {"fsdp"}]> : tensor<8x6xf32>
  %e = math.exp %c : tensor<8x6xf32>
  %d = fsdp.constraint %y <@mesh, [{?}, {}]> : tensor<8x6xf32>
}

//--- partial.mlir
// Sums of partial sums stay partial and are reduced once, behind what cuts or accumulates them too; a maximum, a mean,
// a product and what repeats elements do not pass them on.
// PARTIAL: arith.addf {{.*}} [#fsdp.sharding<@mesh, [{}], unreduced = {"fsdp"}>]
// PARTIAL: arith.mulf {{.*}} [#fsdp.sharding<@mesh, [{}]>]
// PARTIAL: nn.reduce max {{.*}} [#fsdp.sharding<@mesh, [{}], unreduced = {"fsdp"}>]
// PARTIAL: arith.addf {{.*}} [#fsdp.sharding<@mesh, [{}]>]
// PARTIAL: arith.addf {{.*}} [#fsdp.sharding<@mesh, [{}]>]
// PARTIAL: nn.scan_sum {{.*}} [#fsdp.sharding<@mesh, [{}], unreduced = {"fsdp"}>]
// PARTIAL: nn.slice {{.*}} [#fsdp.sharding<@mesh, [{}], unreduced = {"fsdp"}>]
// PARTIAL: nn.repeat {{.*}} [#fsdp.sharding<@mesh, [{}, {}]>]
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
  %s = nn.reduce sum "b i -> i" %x : tensor<8x6xf32> -> tensor<6xf32>
  %a = arith.addf %s, %s : tensor<6xf32>
  %p = arith.mulf %a, %s : tensor<6xf32>
  %m = nn.reduce max "b i -> i" %x : tensor<8x6xf32> -> tensor<6xf32>
  %n = arith.addf %m, %m : tensor<6xf32>
  %o = arith.addf %a, %p : tensor<6xf32>
  %c = nn.scan_sum "i" along "i" %a exclusive : tensor<6xf32>
  %d = nn.slice %c dim 0 start 1 : tensor<6xf32> -> tensor<2xf32>
  %r = nn.repeat "i -> i j" %d : tensor<2xf32> -> tensor<2x3xf32>
}

//--- otherwise-split.mlir
// Partial sums that are split otherwise than their sum are completed where they are moved, so that no part is
// counted twice.
// OTHERWISE: nn.reduce {{.*}} [#fsdp.sharding<@mesh, [{"data"}, {}], unreduced = {"fsdp"}>]
// OTHERWISE: nn.embedding_grad {{.*}} [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>]
// OTHERWISE: arith.addf {{.*}} [#fsdp.sharding<@mesh, [{"data"}, {}]>]
fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4x1xf32>
  %i = fsdp.input "i" sample_dim 0 : tensor<8xi32>
  %d = fsdp.input "d" sample_dim 0 : tensor<8x1xf32>
  %xs = fsdp.constraint %x <@mesh, [{"fsdp"}, {"data"}, {}]> : tensor<8x4x1xf32>
  %is = fsdp.constraint %i <@mesh, [{"fsdp"}]> : tensor<8xi32>
  %ds = fsdp.constraint %d <@mesh, [{"fsdp"}, {}]> : tensor<8x1xf32>
  %a = nn.reduce sum "b r w -> r w" %xs : tensor<8x4x1xf32> -> tensor<4x1xf32>
  %e = nn.embedding_grad partial %is, %ds : tensor<8xi32>, tensor<8x1xf32> -> tensor<4x1xf32>
  %s = arith.addf %a, %e : tensor<4x1xf32>
  %sum = nn.reduce sum "r w ->" %s : tensor<4x1xf32> -> tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
