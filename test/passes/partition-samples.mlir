// RUN: fsdp-opt %s --fsdp-count-samples --fsdp-differentiate --fsdp-propagate --fsdp-partition | FileCheck %s

// Each rank knows from which sample on it has its part of a batch of 10; padding past the batch needs no mask of its
// own. How many samples count is the same on every rank, and no collective.
// CHECK: fsdp.segment @evaluate
// CHECK: %[[N:.*]] = fsdp.sample_count of 10
// CHECK: %[[X:.*]] = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x2xf32>
// CHECK: %[[M:.*]] = fsdp.mask_samples %[[X]], %[[N]] dim 0 shard_of 10 over ["fsdp"] fill 0.000000e+00 : tensor<3x2xf32>
// CHECK-NOT: fsdp.mask_padding
// CHECK: %[[LOCAL:.*]] = nn.reduce sum "b o ->" %[[M]]
// CHECK: %[[W:.*]] = arith.mulf
// CHECK: %[[SUM:.*]] = fsdp.all_reduce sum %[[LOCAL]]
// CHECK-NOT: fsdp.all_reduce
// CHECK: fsdp.output_sum "loss" %[[SUM]] over %[[W]]
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x2xf32>
  %sum = nn.reduce sum "b o ->" %x : tensor<10x2xf32> -> tensor<f64>
  %weight = arith.constant dense<20.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
