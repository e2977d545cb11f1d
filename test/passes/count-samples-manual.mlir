// A rank in a region leaves out those of its samples that do not count: it multiplies what it adds up by its part of numbers that are 0
// for these.
// RUN: fsdp-opt --fsdp-inline-manual --fsdp-count-samples --verify-diagnostics %s | FileCheck %s
// CHECK: %[[COUNT:.*]] = fsdp.sample_count
// CHECK: %[[OWN:.*]] = fsdp.enter_manual %{{.*}} <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<10x5xf32> -> tensor<5x5xf32>
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[OWN]], %[[OWN]]
// CHECK: %[[MASK:.*]] = fsdp.mask_samples %{{.*}}, %[[COUNT]] dim 0
// CHECK: %[[NUMBERS:.*]] = fsdp.constraint %[[MASK]] <@mesh, [{"fsdp", ?}]> {manual = ["fsdp"]} : tensor<10xf32>
// CHECK: %[[PART:.*]] = fsdp.enter_manual %[[NUMBERS]] <@mesh, [{"fsdp"}]> over ["fsdp"] : tensor<10xf32> -> tensor<5xf32>
// CHECK: %[[ROWS:.*]] = nn.repeat "d0 -> d0 d1" %[[PART]]
// CHECK: %[[COUNTED:.*]] = arith.mulf %[[SQUARE]], %[[ROWS]]
// CHECK: nn.reduce sum "b d ->" %[[COUNTED]]
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
  %sum = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, []>]
      : (tensor<10x5xf32>) -> tensor<f64> {
  ^bb0(%own: tensor<5x5xf32>):
    %square = arith.mulf %own, %own : tensor<5x5xf32>
    %part = nn.reduce sum "b d ->" %square : tensor<5x5xf32> -> tensor<f64>
    %all = fsdp.psum %part over ["fsdp"] : tensor<f64>
    fsdp.yield %all : tensor<f64>
  }
  %weight = arith.constant dense<10.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
