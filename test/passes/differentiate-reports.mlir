// RUN: fsdp-opt %s --fsdp-lower-prints --fsdp-differentiate | %{plain} | FileCheck %s

// A metric over a weight of 0 is its sum; the mean of a print without a finite element is NaN.
// CHECK: %[[SUM:.*]] = nn.reduce sum "b ->" %{{.*}} : tensor<8xf32> -> tensor<f64>
// CHECK-NEXT: %[[WEIGHT:.*]] = nn.reduce sum "b ->"
// CHECK: fsdp.output "x.max"
// CHECK-NEXT: arith.divf %{{.*}}, %{{.*}} {fsdp.report} : tensor<f64>
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: fsdp.output "x.mean"
// CHECK: %[[SOME:.*]] = arith.select %{{.*}}, %{{.*}}, %[[WEIGHT]]
// CHECK-NEXT: arith.divf %[[SUM]], %[[SOME]] : tensor<f64>
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: fsdp.output "loss"
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %m = fsdp.input "m" sample_dim 0 : tensor<8xf32>
  fsdp.print "x" %x : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4xf32>
  %y = nn.einsum "bi,i->b" %x, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %z = arith.mulf %y, %m : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %z : tensor<8xf32> -> tensor<f64>
  %weight = nn.reduce sum "b ->" %m : tensor<8xf32> -> tensor<f64>
  fsdp.loss %sum over %weight
}
