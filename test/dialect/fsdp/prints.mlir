// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --cse --canonicalize | FileCheck %s

// Values of any type, in a step and in a checkpoint of it; the same value twice. Nothing removes them.
// CHECK-LABEL: fsdp.step @train
// CHECK: fsdp.print "ids" %{{.*}} : tensor<8xi32>
// CHECK: fsdp.checkpoint full
// CHECK: fsdp.print "squares" %{{.*}} : tensor<8x4xf32>
// CHECK: fsdp.check "squares" %{{.*}} : tensor<8x4xf32>
// CHECK: fsdp.yield
// CHECK: fsdp.print "x" %{{.*}} : tensor<8x4xf32>
// CHECK: fsdp.print "x again" %{{.*}} : tensor<8x4xf32>
// CHECK: fsdp.metric "checked" {{.*}} check 0
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %ids = fsdp.input "ids" sample_dim 0 : tensor<8xi32>
  fsdp.print "ids" %ids : tensor<8xi32>
  %y = fsdp.checkpoint full : tensor<8x4xf32> {
    %p = arith.mulf %x, %x : tensor<8x4xf32>
    fsdp.print "squares" %p : tensor<8x4xf32>
    fsdp.check "squares" %p : tensor<8x4xf32>
    fsdp.yield %p : tensor<8x4xf32>
  }
  fsdp.print "x" %x : tensor<8x4xf32>
  fsdp.print "x again" %x : tensor<8x4xf32>
  %sum = nn.reduce sum "b w ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.metric "checked" %sum over %weight check 0
  fsdp.loss %sum over %weight
}
