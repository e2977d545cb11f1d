// One layer on four ranks with a batch and a unit that do not divide: the whole of what partitioning does.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition | %{plain} | FileCheck %s

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @kernel : tensor<6x3xf32> unit "linear" init <normal, 2.0e-02>
fsdp.param @bias : tensor<3xf32> unit "linear" init <constant, 0.0>

// 21 elements on four ranks are 6 each, rounded up to 16.
// CHECK: module attributes {fsdp.phase = "local"}
// CHECK: fsdp.storage @linear.flat : tensor<16xf32> flat over ["fsdp"] states ["momentum"] members [#fsdp.member<@kernel at 0>, #fsdp.member<@bias at 18>]
// CHECK-NEXT: fsdp.program @all role {}
// CHECK-NEXT: fsdp.segment @train train next [@train, @evaluate]
// CHECK-NEXT: %[[X:.*]] = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x6xf32>
// CHECK-NEXT: %[[Y:.*]] = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x3xf32>

// The unit is gathered right before its first use, once for both parameters.
// CHECK-NEXT: %[[SHARD:.*]] = fsdp.load @linear.flat "parameter" : tensor<16xf32>
// CHECK-NEXT: %[[UNIT:.*]] = fsdp.all_gather %[[SHARD]] dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<21xf32>
// CHECK-NEXT: %[[W:.*]] = fsdp.view %[[UNIT]] at 0 : tensor<21xf32> -> tensor<6x3xf32>
// CHECK-NEXT: nn.einsum "bi,io->bo" %[[X]], %[[W]] : (tensor<3x6xf32>, tensor<6x3xf32>) -> tensor<3x3xf32>
// CHECK-NEXT: %[[B:.*]] = fsdp.view %[[UNIT]] at 18 : tensor<21xf32> -> tensor<3xf32>
// CHECK-NEXT: nn.repeat "o -> b o" %[[B]] : tensor<3xf32> -> tensor<3x3xf32>

// The rows past the batch do not count.
// CHECK: %[[Q:.*]] = arith.mulf
// CHECK-NEXT: %[[M:.*]] = fsdp.mask_padding %[[Q]] dim 0 of 10 over ["fsdp"] fill 0.000000e+00 : tensor<3x3xf32>
// CHECK-NEXT: %[[SUM:.*]] = nn.reduce sum "b o ->" %[[M]]

// Neither in the gradients: one mask serves both, one masked operand the contraction.
// CHECK: %[[DM:.*]] = fsdp.mask_padding %[[D:.*]] dim 0 of 10
// CHECK-NEXT: %[[DB:.*]] = nn.reduce sum "b o -> o" %[[DM]]
// CHECK-NEXT: %[[DW:.*]] = nn.einsum "bi,bo->io" %[[X]], %[[DM]]
// CHECK-NEXT: %[[G:.*]] = fsdp.flatten %[[DW]], %[[DB]] : (tensor<6x3xf32>, tensor<3xf32>) -> tensor<21xf32>
// CHECK-NEXT: %[[GS:.*]] = fsdp.reduce_scatter %[[G]] dim 0 over ["fsdp"] : tensor<21xf32> -> tensor<16xf32>

// The loss's sum is reduced where it is used, after backward.
// CHECK-NEXT: %[[TOTAL:.*]] = fsdp.all_reduce sum %[[SUM]] over ["fsdp"] : tensor<f64>
// CHECK: fsdp.output "loss"
// CHECK-NEXT: %[[SQ:.*]] = fsdp.square_sum %[[GS]] : tensor<16xf32>
// CHECK-NEXT: %[[SQS:.*]] = fsdp.all_reduce sum %[[SQ]] over ["fsdp"] : tensor<f64>
// CHECK-NEXT: %[[ROOT:.*]] = math.sqrt %[[SQS]] : tensor<f64>
// CHECK-NEXT: %[[NORM:.*]] = arith.truncf %[[ROOT]] : tensor<f64> to tensor<f32>
// CHECK-NEXT: fsdp.output "grad_norm" %[[NORM]]
// CHECK: %[[P:.*]] = fsdp.load @linear.flat "parameter"
// CHECK-NEXT: %[[V:.*]] = fsdp.load @linear.flat "momentum"
// CHECK-NEXT: %[[P1:.*]], %[[V1:.*]] = fsdp.optimizer_step <sgd, {{.*}}> @linear.flat %[[P]], %[[GS]] states(%[[V]])
// CHECK-NEXT: fsdp.store %[[P1]], @linear.flat "parameter"
// CHECK-NEXT: fsdp.store %[[V1]], @linear.flat "momentum"
// CHECK-NEXT: fsdp.advance
// CHECK-NOT: fsdp.step

// CHECK: fsdp.segment @evaluate evaluate next [@train, @evaluate]
// CHECK: fsdp.all_gather
// CHECK-NOT: fsdp.all_gather
// CHECK-NOT: fsdp.store
// CHECK: fsdp.mask_samples %{{.*}}, %{{.*}} dim 0 shard_of 10 over ["fsdp"] fill 0.000000e+00 : tensor<3x3xf32>
// CHECK-NOT: fsdp.mask_padding
// CHECK: fsdp.output_sum "loss"
fsdp.step @train train optimizer <sgd, lr = 0.1, momentum = 0.9> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %w = fsdp.read @kernel : tensor<6x3xf32>
  %b = fsdp.read @bias : tensor<3xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x6xf32>, tensor<6x3xf32>) -> tensor<10x3xf32>
  %r = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<10x3xf32>
  %p = arith.addf %z, %r : tensor<10x3xf32>
  %e = arith.subf %p, %y : tensor<10x3xf32>
  %q = arith.mulf %e, %e : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %q : tensor<10x3xf32> -> tensor<f64>
  %weight = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
