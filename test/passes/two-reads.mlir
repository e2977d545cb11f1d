// In the global phase the same holds for reads, which become gathers: two reads of one parameter stay two,
// an unused one goes.
// RUN: fsdp-opt %s --cse --canonicalize --loop-invariant-code-motion | FileCheck %s

fsdp.param @w : tensor<4x4xf32> unit "fc" init <normal, 2.0e-02>

// CHECK-LABEL: fsdp.step @evaluate
// CHECK-COUNT-2: fsdp.read
// CHECK-NOT: fsdp.read
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<6x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  %unused = fsdp.read @w : tensor<4x4xf32>
  %y = nn.einsum "bi,io->bo" %x, %w : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %v = fsdp.read @w : tensor<4x4xf32>
  %d = nn.einsum "bo,io->bi" %y, %v : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %sum = nn.reduce sum "b i ->" %d : tensor<6x4xf32> -> tensor<f64>
  %weight = arith.constant dense<6.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
