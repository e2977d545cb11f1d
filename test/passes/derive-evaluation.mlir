// RUN: fsdp-opt %s --fsdp-derive-evaluation --split-input-file | FileCheck %s

// The computation without the optimizer; the training step stays as it is.
// CHECK-LABEL: fsdp.step @train
// CHECK-SAME: optimizer <sgd
// CHECK: fsdp.loss
// CHECK: fsdp.step @evaluate
// CHECK-NOT: optimizer
// CHECK: %[[W:.*]] = fsdp.read @w
// CHECK: %[[SUM:.*]] = nn.reduce sum "a ->" %[[W]]
// CHECK: fsdp.loss %[[SUM]] over
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<3xf32>
  %sum = nn.reduce sum "a ->" %w : tensor<3xf32> -> tensor<f64>
  %weight = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// A module that evaluates already is left alone.
// CHECK-LABEL: fsdp.step @train
// CHECK: fsdp.step @mine
// CHECK-NOT: fsdp.step
fsdp.step @train train optimizer <sgd, lr = 0.1> {
}
fsdp.step @mine evaluate {
}

// -----

// Without backward nothing is kept or computed again: bodies of checkpoints stand in their place.
// CHECK-LABEL: fsdp.step @train
// CHECK: fsdp.checkpoint full
// CHECK-LABEL: fsdp.step @evaluate
// CHECK-NOT: fsdp.checkpoint
// CHECK: %[[W:.*]] = fsdp.read @w
// CHECK-NEXT: %[[T:.*]] = math.tanh %[[W]]
// CHECK-NEXT: nn.reduce sum "a ->" %[[T]]
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %t = fsdp.checkpoint full : tensor<3xf32> {
    %w = fsdp.read @w : tensor<3xf32>
    %h = math.tanh %w : tensor<3xf32>
    fsdp.yield %h : tensor<3xf32>
  }
  %sum = nn.reduce sum "a ->" %t : tensor<3xf32> -> tensor<f64>
  %weight = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Prints and checks are of training alone, in checkpoints as well.
// CHECK-LABEL: fsdp.step @reports
// CHECK: fsdp.print "p"
// CHECK: fsdp.check "x"
// CHECK: fsdp.step @evaluate
// CHECK-NOT: fsdp.print
// CHECK-NOT: fsdp.check
// CHECK: fsdp.loss
fsdp.step @reports train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %y = fsdp.checkpoint full : tensor<8xf32> {
    %p = arith.mulf %x, %x : tensor<8xf32>
    fsdp.print "p" %p : tensor<8xf32>
    fsdp.yield %p : tensor<8xf32>
  }
  fsdp.check "x" %x : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %y : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
