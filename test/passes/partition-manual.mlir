// Values of a region move between ranks over its other axes alone: along its own, each rank has another value. %w enters as a pending sum, of which rank 0 has all.
// RUN: fsdp-opt --fsdp-to-local %s | FileCheck %s
// A sum that is partial where it enters stays one: nothing is added up before the region does.
// RUN: fsdp-opt --fsdp-to-local %s | FileCheck %s --check-prefix=SUM
// CHECK: %[[FIRST:.*]] = fsdp.shard_offset of 2 over ["fsdp"]
// CHECK-NEXT: %[[OWN:.*]] = nn.fused %[[FIRST]], %{{.*}} : (tensor<i64>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK: fsdp.all_gather %[[OWN]] dim 0 over ["tensor"] : tensor<4x6xf32> -> tensor<8x6xf32>
// SUM: %[[PART:.*]] = nn.einsum "bi,bi->"
// SUM-NOT: %[[PART]]
// SUM: fsdp.all_reduce sum %[[PART]] over ["fsdp"] : tensor<f32>
// SUM-NOT: %[[PART]]
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<8x6xf32> unit "w" init <normal, 1.0> split [["tensor"], []]
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
  %w = fsdp.read @w : tensor<8x6xf32>
  %rows = fsdp.constraint %x <@mesh, [{"tensor"}, {}]> : tensor<4x8xf32>
  %y = fsdp.manual(%rows, %w) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}]>, #fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%own: tensor<4x8xf32>, %part: tensor<8x6xf32>):
    %p = nn.einsum "bi,io->bo" %own, %part : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    fsdp.yield %p : tensor<4x6xf32>
  }
  %sum = nn.einsum "bi,bi->" %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<f32>
  %z = fsdp.manual(%sum) over ["fsdp"] in [#fsdp.sharding<@mesh, [], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, []>] : (tensor<f32>) -> tensor<f32> {
  ^bb0(%part: tensor<f32>):
    %added = fsdp.psum %part over ["fsdp"] : tensor<f32>
    fsdp.yield %added : tensor<f32>
  }
  %t = math.tanh %z : tensor<f32>
  %total = nn.reduce sum "b o ->" %y : tensor<4x6xf32> -> tensor<f32>
  %both = arith.addf %t, %total : tensor<f32>
  %loss = arith.extf %both : tensor<f32> to tensor<f64>
  %one = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %loss over %one
}
