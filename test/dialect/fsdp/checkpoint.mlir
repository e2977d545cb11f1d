// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --cse --canonicalize | FileCheck %s --check-prefix=CLEAN

fsdp.param @w : tensor<4x4xf32> unit "w" init <normal, 2.0e-02>

// Bodies use values from outside, read parameters and draw.
// CHECK-LABEL: fsdp.step @train
// CHECK: %[[X:.*]] = fsdp.input
// CHECK: %[[Y:.*]] = fsdp.checkpoint full : tensor<8x4xf32> {
// CHECK-NEXT: fsdp.read @w {fsdp.structure = #fsdp.structure<"w">}
// CHECK-NEXT: nn.einsum "bi,io->bo" %[[X]],
// CHECK: fsdp.yield %{{.*}} : tensor<8x4xf32>
// CHECK-NEXT: }
// CHECK: %[[Z:.*]]:2 = fsdp.checkpoint selective : tensor<8x4xf32>, tensor<8x4xf32> {
// CHECK: fsdp.dropout %[[Y]]
// CHECK: arith.addf %[[Z]]#0, %[[Z]]#1

// A region that nothing uses goes; equal ones with reads stay two.
// CLEAN-LABEL: fsdp.step @train
// CLEAN: fsdp.checkpoint full
// CLEAN: fsdp.checkpoint selective
// CLEAN-NOT: fsdp.checkpoint
// CLEAN-LABEL: fsdp.step @twice
// CLEAN-COUNT-2: fsdp.checkpoint full
// CLEAN-NOT: fsdp.checkpoint
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.checkpoint full : tensor<8x4xf32> {
    %w = fsdp.read @w {fsdp.structure = #fsdp.structure<"w">} : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %p : tensor<8x4xf32>
  }
  %z:2 = fsdp.checkpoint selective : tensor<8x4xf32>, tensor<8x4xf32> {
    %d = fsdp.dropout %y rate 1.0e-01 name "drop" : tensor<8x4xf32>
    %t = math.tanh %d : tensor<8x4xf32>
    fsdp.yield %d, %t : tensor<8x4xf32>, tensor<8x4xf32>
  }
  fsdp.checkpoint full {
    %w = fsdp.read @w : tensor<4x4xf32>
  }
  %s = arith.addf %z#0, %z#1 : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %s : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

fsdp.step @twice train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.checkpoint full : tensor<8x4xf32> {
    %w = fsdp.read @w : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %p : tensor<8x4xf32>
  }
  %z = fsdp.checkpoint full : tensor<8x4xf32> {
    %w = fsdp.read @w : tensor<4x4xf32>
    %p = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    fsdp.yield %p : tensor<8x4xf32>
  }
  %s = arith.addf %y, %z : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %s : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
