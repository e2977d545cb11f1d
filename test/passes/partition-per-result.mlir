// Ops of which one result is split where another is a partial sum, and lookups, on a batch that does
// not divide: rows past its end count in no sum.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition | %{plain} | FileCheck %s

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @table : tensor<7x6xf32> unit "embedding" init <normal, 2.0e-02>
fsdp.param @scale : tensor<6xf32> unit "head" init <constant, 1.0>
fsdp.param @bias : tensor<6xf32> unit "head" init <constant, 0.0>

// CHECK: fsdp.segment @train
// CHECK: %[[IDS:.*]] = fsdp.input "ids" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<3x2xi32>
// CHECK: %[[X:.*]] = nn.embedding %{{.*}}, %[[IDS]] : tensor<7x6xf32>, tensor<3x2xi32> -> tensor<3x2x6xf32>
// CHECK: %{{.*}}, %[[MEAN:.*]], %[[RSTD:.*]] = nn.layer_norm %[[X]], {{.*}} : tensor<3x2x6xf32>, tensor<6xf32> -> tensor<3x2xf32>

// Only the cotangent is masked: its zeros make every term of the sums zero.
// CHECK: nn.reduce sum
// CHECK: %[[DY:.*]] = fsdp.mask_padding %{{.*}} dim 0 of 10 over ["fsdp"] fill 0.000000e+00 : tensor<3x2x6xf32>
// CHECK: %[[DX:.*]], %[[DSCALE:.*]], %[[DBIAS:.*]] = nn.layer_norm_grad %[[X]], %{{.*}}, %[[MEAN]], %[[RSTD]], %[[DY]] : tensor<3x2x6xf32>, tensor<6xf32>, tensor<3x2xf32>
// The gradients of the parameters are partial sums, reduced once and together.
// CHECK-NOT: fsdp.all_reduce
// CHECK: fsdp.flatten %[[DSCALE]], %[[DBIAS]] : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
// CHECK-NEXT: fsdp.reduce_scatter
// CHECK-NOT: fsdp.all_reduce
// CHECK: %[[DM:.*]] = fsdp.mask_padding %[[DX]] dim 0 of 10
// CHECK-NEXT: %[[DT:.*]] = nn.embedding_grad %[[IDS]], %[[DM]] : tensor<3x2xi32>, tensor<3x2x6xf32> -> tensor<7x6xf32>
// CHECK-NEXT: fsdp.flatten %[[DT]]
// CHECK-NEXT: fsdp.reduce_scatter
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<10x2xi32>
  %t = fsdp.read @table : tensor<7x6xf32>
  %x = nn.embedding %t, %ids : tensor<7x6xf32>, tensor<10x2xi32> -> tensor<10x2x6xf32>
  %s = fsdp.read @scale : tensor<6xf32>
  %b = fsdp.read @bias : tensor<6xf32>
  %y, %mean, %rstd = nn.layer_norm %x, %s, %b eps 1.0e-05
      : tensor<10x2x6xf32>, tensor<6xf32> -> tensor<10x2xf32>
  %q = arith.mulf %y, %y : tensor<10x2x6xf32>
  %sum = nn.reduce sum "b t d ->" %q : tensor<10x2x6xf32> -> tensor<f64>
  %weight = arith.constant dense<120.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
