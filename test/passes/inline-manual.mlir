// Regions are replaced by their bodies, also in checkpoints and in one another. An invariant value that an op combines with a varying one goes through
// pvary: before what is computed from it alone (a tanh, a repeated bias), where it is smallest, so that its gradient leaves the region as a
// partial sum and is reduced with those of its unit.
// RUN: fsdp-opt --fsdp-inline-manual %s | FileCheck %s
// RUN: fsdp-opt --fsdp-inline-manual --fsdp-differentiate %s | FileCheck %s --check-prefix=GRAD
// The same again: there is nothing left to do.
// RUN: fsdp-opt --fsdp-inline-manual %s -o %t.mlir && fsdp-opt --fsdp-inline-manual %t.mlir | diff %t.mlir -
// CHECK-LABEL: fsdp.step @train
// CHECK: %[[X:.*]] = fsdp.input
// CHECK: fsdp.checkpoint full
// CHECK-NEXT: %[[XC:.*]] = fsdp.constraint %[[X]] <@mesh, [{"fsdp", ?}, {?}]> {manual = ["fsdp"]}
// CHECK-NEXT: %[[OWN:.*]] = fsdp.enter_manual %[[XC]] <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<4x4xf32>
// CHECK: %[[W:.*]] = fsdp.enter_manual %{{.*}} <@mesh, [{}, {}]> over ["fsdp"] : tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK: %[[B:.*]] = fsdp.enter_manual %{{.*}} <@mesh, [{}]> over ["fsdp"] : tensor<4xf32> -> tensor<4xf32>
// CHECK-DAG: %[[BV:.*]] = fsdp.pvary %[[B]] over ["fsdp"] : tensor<4xf32>
// CHECK-DAG: %[[WV:.*]] = fsdp.pvary %[[W]] over ["fsdp"] : tensor<4x4xf32>
// CHECK: math.tanh %[[WV]]
// CHECK-NOT: fsdp.manual
// CHECK: %[[COLUMNS:.*]] = fsdp.enter_manual %{{.*}} <@mesh, [{}, {"tensor"}]> over ["tensor"] : tensor<4x4xf32> -> tensor<4x2xf32>
// CHECK: %[[ROWS:.*]] = fsdp.enter_manual %{{.*}} <@mesh, [{"tensor"}, {}]> over ["tensor"] : tensor<4x4xf32> -> tensor<2x4xf32>
// CHECK-NEXT: %[[P:.*]] = nn.einsum "bi,io->bo" %[[COLUMNS]], %[[ROWS]]
// CHECK-NEXT: %[[S:.*]] = fsdp.psum %[[P]] over ["tensor"]
// CHECK-NEXT: fsdp.exit_manual %[[S]] <@mesh, [{}, {}]> over ["tensor"]
// CHECK-NEXT: nn.repeat "o -> b o" %[[BV]]
// CHECK-NOT: fsdp.pvary
// CHECK: fsdp.exit_manual %{{.*}} <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<4x4xf32> -> tensor<8x4xf32>
// GRAD: fsdp.psum %{{.*}} over ["tensor"]
// GRAD-NOT: fsdp.psum
// GRAD: fsdp.exit_manual %{{.*}} <@mesh, [{"tensor"}, {}]> over ["tensor"] {fsdp.structure = #fsdp.structure<backward>}
// GRAD: fsdp.exit_manual %{{.*}} <@mesh, [{}], unreduced = {"fsdp"}> over ["fsdp"]
// GRAD: fsdp.gradient @b
// GRAD: fsdp.exit_manual %{{.*}} <@mesh, [{}, {}], unreduced = {"fsdp"}> over ["fsdp"]
// GRAD: fsdp.gradient @w
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<4x4xf32> unit "w" init <constant, 0.0>
fsdp.param @b : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  %b = fsdp.read @b : tensor<4xf32>
  %y = fsdp.checkpoint full : tensor<8x4xf32> {
    %inner = fsdp.manual(%x, %w, %b) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}, {}]>, #fsdp.sharding<@mesh, [{}]>]
        out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    ^bb0(%own: tensor<4x4xf32>, %weight: tensor<4x4xf32>, %bias: tensor<4xf32>):
      %t = math.tanh %weight : tensor<4x4xf32>
      %p = fsdp.manual(%own, %t) over ["tensor"] in [#fsdp.sharding<@mesh, [{}, {"tensor"}]>, #fsdp.sharding<@mesh, [{"tensor"}, {}]>]
          out [#fsdp.sharding<@mesh, [{}, {}]>] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
      ^bb0(%columns: tensor<4x2xf32>, %rows: tensor<2x4xf32>):
        %q = nn.einsum "bi,io->bo" %columns, %rows : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
        %s = fsdp.psum %q over ["tensor"] : tensor<4x4xf32>
        fsdp.yield %s : tensor<4x4xf32>
      }
      %r = nn.repeat "o -> b o" %bias : tensor<4xf32> -> tensor<4x4xf32>
      %z = arith.addf %p, %r : tensor<4x4xf32>
      fsdp.yield %z : tensor<4x4xf32>
    }
    fsdp.yield %inner : tensor<8x4xf32>
  }
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
