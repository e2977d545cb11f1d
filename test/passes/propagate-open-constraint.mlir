// A constraint that leaves everything open asks for nothing: the product is still made as the other constraint on it asks, and the
// value under its second name is split as its user wants it.
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-propagate 2>/dev/null | FileCheck %s
// CHECK: nn.einsum {{.*}}[#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// CHECK-NEXT: fsdp.constraint {{.*}}[{"fsdp"}, {}]> {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
// CHECK-NEXT: fsdp.constraint {{.*}}[{?}, {?}]> {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {"tensor"}]>]
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<4x8xf32> unit "u" init <normal, 0.5>
fsdp.step @eval evaluate {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x8xf32>
  %v = nn.einsum "bi,io->bo" %in, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %c = fsdp.constraint %v <@mesh, [{"fsdp"}, {}]> : tensor<8x8xf32>
  %again = fsdp.constraint %v <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %t = math.tanh %again : tensor<8x8xf32>
  %d = fsdp.constraint %t <@mesh, [{"fsdp"}, {"tensor"}]> : tensor<8x8xf32>
  %e = arith.addf %c, %d : tensor<8x8xf32>
}
