// Regions of the model are narrowed like the rest: results have the types of what is yielded. A value from outside is cast outside,
// once, so that sums of its cotangents are those of the model without regions.
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-mixed-precision | FileCheck %s

// CHECK-LABEL: fsdp.step @train
// CHECK: %[[X:.*]] = fsdp.input "x"
// CHECK-NEXT: %[[CAST:.*]] = arith.truncf %[[X]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK-NEXT: %[[Y:.*]]:2 = fsdp.checkpoint full : tensor<8x4xbf16>, tensor<8x4xf32> {
// CHECK-NEXT: %[[W:.*]] = fsdp.read @w : tensor<4x4xbf16>
// CHECK-NEXT: %[[P:.*]] = nn.einsum "bi,io->bo" %[[CAST]], %[[W]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]] : tensor<8x4xf32>
// CHECK-NEXT: fsdp.yield %[[P]], %[[E]] : tensor<8x4xbf16>, tensor<8x4xf32>
// CHECK-NOT: arith.truncf
// CHECK: nn.einsum "bi,io->bo" %[[CAST]],
// CHECK: fsdp.checkpoint selective : tensor<8x4xbf16> {
// CHECK: nn.einsum "bi,io->bo" %[[CAST]],
// CHECK: fsdp.yield
// CHECK: arith.addf %[[Y]]#0, %{{.*}} : tensor<8x4xbf16>
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x4xf32> unit "u" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y:2 = fsdp.checkpoint full : tensor<8x4xf32>, tensor<8x4xf32> {
    %w = fsdp.read @w : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %e = math.exp %x : tensor<8x4xf32>
    fsdp.yield %p, %e : tensor<8x4xf32>, tensor<8x4xf32>
  }
  %w = fsdp.read @w : tensor<4x4xf32>
  %p = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %z = fsdp.checkpoint selective : tensor<8x4xf32> {
    %v = fsdp.read @w : tensor<4x4xf32>
    %q = nn.einsum "bi,io->bo" %x, %v : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %q : tensor<8x4xf32>
  }
  %s = arith.addf %y#0, %p : tensor<8x4xf32>
  %t = arith.addf %s, %z : tensor<8x4xf32>
  %u = arith.mulf %t, %y#1 : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %u : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
