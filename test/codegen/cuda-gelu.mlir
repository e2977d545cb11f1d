// GELU of bf16 results, in its form with tanh, and its gradient are functions of FusedKernel.h on CUDA; in f32, and on the CPU,
// they are computed as they are written. So is everything else that has a tanh.
// RUN: fsdp-opt %s --fsdp-to-scheduled=precision=bf16 -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | FileCheck %s --check-prefix=WRITTEN
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s --check-prefix=WRITTEN

// CHECK-DAG:  = fastGelu(
// CHECK-DAG:  fastGeluGradient(
// CHECK-DAG:  = tanhf(
// WRITTEN-NOT: fastGelu
// WRITTEN:     {{tanhf|vectorTanh}}(
// WRITTEN-NOT: fastGelu

fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @w : tensor<16x24xf32> unit "u" init <normal, 0.5>
fsdp.param @v : tensor<24x16xf32> unit "v" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x16xf32>
  %w = fsdp.read @w : tensor<16x24xf32>
  %v = fsdp.read @v : tensor<24x16xf32>
  %half = arith.constant dense<0.5> : tensor<8x24xf32>
  %one = arith.constant dense<1.0> : tensor<8x24xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<8x24xf32>
  %other = arith.constant dense<4.500000e-02> : tensor<8x16xf32>
  %root = arith.constant dense<0.797884583> : tensor<8x24xf32>
  %h = nn.einsum "bi,ij->bj" %x, %w : (tensor<8x16xf32>, tensor<16x24xf32>) -> tensor<8x24xf32>
  %q = arith.mulf %h, %h : tensor<8x24xf32>
  %c = arith.mulf %q, %h : tensor<8x24xf32>
  %d = arith.mulf %c, %cubic : tensor<8x24xf32>
  %e = arith.addf %h, %d : tensor<8x24xf32>
  %f = arith.mulf %e, %root : tensor<8x24xf32>
  %t = math.tanh %f : tensor<8x24xf32>
  %u = arith.addf %t, %one : tensor<8x24xf32>
  %g = arith.mulf %h, %half : tensor<8x24xf32>
  %y = arith.mulf %g, %u : tensor<8x24xf32> loc("gelu")
  %z = nn.einsum "bj,ji->bi" %y, %v : (tensor<8x24xf32>, tensor<24x16xf32>) -> tensor<8x16xf32>
  %s = arith.mulf %z, %other : tensor<8x16xf32>
  %p = math.tanh %s : tensor<8x16xf32>
  %sum = nn.reduce sum "b i ->" %p : tensor<8x16xf32> -> tensor<f64>
  %count = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %count
}
