// Loops behind a product that cuBLASLt computes too: their kernel is for products for which it has no
// algorithm, and the launch names both.
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | sed -n '/^void .*(Context &c/,/^}/p' > %t.cpp
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | sed -n '/^void .*(Context &c/,/^}/p' | diff %t.cpp -

// A bias and a residual, by the numbers of the loops' operands.
// CHECK:      cudaError_t bias_loops(const float *b, const float *einsum, float *bias, cudaStream_t stream) {
// CHECK-NEXT:   return launchKernel(bias_kernel,
// CHECK:      constexpr fsdp::rt::ProductEpilogue bias{/*bias=*/0, /*residual=*/-1,
// CHECK-NEXT:     fsdp::rt::ProductFunction::none, /*argument=*/-1, bias_loops};
// CHECK:      cudaError_t residual_loops(
// CHECK:      constexpr fsdp::rt::ProductEpilogue residual{/*bias=*/-1, /*residual=*/0,
// CHECK-NEXT:     fsdp::rt::ProductFunction::none, /*argument=*/-1, residual_loops};
// CHECK:      cudaError_t both_loops(const float *b, const float *h, const float *einsum, float *both,
// CHECK:      constexpr fsdp::rt::ProductEpilogue both{/*bias=*/0, /*residual=*/1,
// CHECK-NEXT:     fsdp::rt::ProductFunction::none, /*argument=*/-1, both_loops};
// A GELU, and the sum before it, which backward reads.
// CHECK:      constexpr fsdp::rt::ProductEpilogue gelu{/*bias=*/0, /*residual=*/-1,
// CHECK-NEXT:     fsdp::rt::ProductFunction::gelu, /*argument=*/-1, gelu_loops};
// CHECK:      cudaError_t kept_loops(const float *b, const float *einsum, float *kept_0, float *kept_1,
// CHECK:      constexpr fsdp::rt::ProductEpilogue kept{/*bias=*/0, /*residual=*/-1,
// CHECK-NEXT:     fsdp::rt::ProductFunction::gelu, /*argument=*/-1, kept_loops};
// All else is a kernel alone.
// CHECK-NOT:  ProductEpilogue
// CHECK:      cudaError_t two_residuals(
// CHECK:      cudaError_t positions(
// CHECK:      cudaError_t other_function(
// CHECK:      cudaError_t function_of_residual(
// CHECK-NOT:  ProductEpilogue
// The derivative of GELU at a value that forward kept. cuBLASLt's sum over rows has the type of the result and another
// order: a kernel adds the rows up, and computes nothing else again.
// CHECK:      cudaError_t slope_loops(const float *h, const float *einsum, float *slope_0, float *slope_1,
// CHECK:      static __global__ void {{.*}}slope_rest_kernel(const float *h, const float *einsum, float *slope_0,
// CHECK-NOT:    tanhf
// CHECK:        total[e] = total[e] + {{[a-z_0-9]+}}[r][e];
// CHECK:      cudaError_t slope_rest(const float *h, const float *einsum, float *slope_0, float *slope_1,
// CHECK:      constexpr fsdp::rt::ProductEpilogue slope{/*bias=*/-1, /*residual=*/-1,
// CHECK-NEXT:     fsdp::rt::ProductFunction::geluGradient, /*argument=*/0, slope_loops, slope_rest};
// CHECK: gemm(c, kCompute, "bias",
// CHECK: writes(arena::bias), fused::bias);
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.input "g" sample_dim 0 : tensor<2x8x6xf32> loc("g")
      %h = fsdp.input "h" sample_dim 0 : tensor<2x8x16xf32> loc("h")
      %b = fsdp.input "b" sample_dim 0 : tensor<16xf32> loc("b")
      %p = fsdp.input "p" sample_dim 0 : tensor<8x16xf32> loc("p")
      %w = fsdp.input "w" sample_dim 0 : tensor<6x16xf32> loc("w")
      %half = arith.constant dense<5.000000e-01> : tensor<2x8x16xf32>
      %one = arith.constant dense<1.000000e+00> : tensor<2x8x16xf32>
      %cubic = arith.constant dense<4.471500e-02> : tensor<2x8x16xf32>
      %other = arith.constant dense<4.500000e-02> : tensor<2x8x16xf32>
      %root = arith.constant dense<0.797884583> : tensor<2x8x16xf32>

      %z0 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %r0 = nn.repeat "d -> b s d" %b : tensor<16xf32> -> tensor<2x8x16xf32>
      %y0 = arith.addf %z0, %r0 : tensor<2x8x16xf32> loc("bias")

      %z1 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %y1 = arith.addf %h, %z1 : tensor<2x8x16xf32> loc("residual")

      %z2 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %r2 = nn.repeat "d -> b s d" %b : tensor<16xf32> -> tensor<2x8x16xf32>
      %s2 = arith.addf %z2, %h : tensor<2x8x16xf32>
      %y2 = arith.addf %r2, %s2 : tensor<2x8x16xf32> loc("both")

      %z3 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %r3 = nn.repeat "d -> b s d" %b : tensor<16xf32> -> tensor<2x8x16xf32>
      %x3 = arith.addf %z3, %r3 : tensor<2x8x16xf32>
      %q3 = arith.mulf %x3, %x3 : tensor<2x8x16xf32>
      %c3 = arith.mulf %q3, %x3 : tensor<2x8x16xf32>
      %d3 = arith.mulf %c3, %cubic : tensor<2x8x16xf32>
      %e3 = arith.addf %x3, %d3 : tensor<2x8x16xf32>
      %f3 = arith.mulf %e3, %root : tensor<2x8x16xf32>
      %t3 = math.tanh %f3 : tensor<2x8x16xf32>
      %u3 = arith.addf %t3, %one : tensor<2x8x16xf32>
      %v3 = arith.mulf %x3, %half : tensor<2x8x16xf32>
      %y3 = arith.mulf %v3, %u3 : tensor<2x8x16xf32> loc("gelu")

      // The order of factors and terms does not matter.
      %z4 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %r4 = nn.repeat "d -> b s d" %b : tensor<16xf32> -> tensor<2x8x16xf32>
      %x4 = arith.addf %z4, %r4 : tensor<2x8x16xf32> loc("kept")
      %d4 = arith.mulf %cubic, %x4 : tensor<2x8x16xf32>
      %q4 = arith.mulf %x4, %x4 : tensor<2x8x16xf32>
      %c4 = arith.mulf %d4, %q4 : tensor<2x8x16xf32>
      %e4 = arith.addf %c4, %x4 : tensor<2x8x16xf32>
      %f4 = arith.mulf %root, %e4 : tensor<2x8x16xf32>
      %t4 = math.tanh %f4 : tensor<2x8x16xf32>
      %u4 = arith.addf %one, %t4 : tensor<2x8x16xf32>
      %v4 = arith.mulf %u4, %x4 : tensor<2x8x16xf32>
      %y4 = arith.mulf %half, %v4 : tensor<2x8x16xf32> loc("kept")

      %z5 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %s5 = arith.addf %z5, %h : tensor<2x8x16xf32>
      %y5 = arith.addf %s5, %h : tensor<2x8x16xf32> loc("two residuals")

      // A vector of which rows have different elements.
      %z6 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %r6 = nn.repeat "s d -> b s d" %p : tensor<8x16xf32> -> tensor<2x8x16xf32>
      %y6 = arith.addf %z6, %r6 : tensor<2x8x16xf32> loc("positions")

      %x7 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %q7 = arith.mulf %x7, %x7 : tensor<2x8x16xf32>
      %c7 = arith.mulf %q7, %x7 : tensor<2x8x16xf32>
      %d7 = arith.mulf %c7, %other : tensor<2x8x16xf32>
      %e7 = arith.addf %x7, %d7 : tensor<2x8x16xf32>
      %f7 = arith.mulf %e7, %root : tensor<2x8x16xf32>
      %t7 = math.tanh %f7 : tensor<2x8x16xf32>
      %u7 = arith.addf %t7, %one : tensor<2x8x16xf32>
      %v7 = arith.mulf %x7, %half : tensor<2x8x16xf32>
      %y7 = arith.mulf %v7, %u7 : tensor<2x8x16xf32> loc("other function")

      %z8 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %x8 = arith.addf %z8, %h : tensor<2x8x16xf32>
      %q8 = arith.mulf %x8, %x8 : tensor<2x8x16xf32>
      %c8 = arith.mulf %q8, %x8 : tensor<2x8x16xf32>
      %d8 = arith.mulf %c8, %cubic : tensor<2x8x16xf32>
      %e8 = arith.addf %x8, %d8 : tensor<2x8x16xf32>
      %f8 = arith.mulf %e8, %root : tensor<2x8x16xf32>
      %t8 = math.tanh %f8 : tensor<2x8x16xf32>
      %u8 = arith.addf %t8, %one : tensor<2x8x16xf32>
      %v8 = arith.mulf %x8, %half : tensor<2x8x16xf32>
      %y8 = arith.mulf %v8, %u8 : tensor<2x8x16xf32> loc("function of residual")

      %d9 = nn.einsum "bsf,fd->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<6x16xf32>) -> tensor<2x8x16xf32>
      %q9 = arith.mulf %h, %h : tensor<2x8x16xf32>
      %c9 = arith.mulf %q9, %h : tensor<2x8x16xf32>
      %k9 = arith.mulf %c9, %cubic : tensor<2x8x16xf32>
      %e9 = arith.addf %h, %k9 : tensor<2x8x16xf32>
      %f9 = arith.mulf %e9, %root : tensor<2x8x16xf32>
      %t9 = math.tanh %f9 : tensor<2x8x16xf32>
      %u9 = arith.addf %t9, %one : tensor<2x8x16xf32>
      %v9 = arith.mulf %d9, %u9 : tensor<2x8x16xf32>
      %a9 = arith.mulf %v9, %half : tensor<2x8x16xf32>
      %x9 = arith.mulf %h, %half : tensor<2x8x16xf32>
      %w9 = arith.mulf %d9, %x9 : tensor<2x8x16xf32>
      %s9 = arith.mulf %t9, %t9 : tensor<2x8x16xf32>
      %i9 = arith.subf %one, %s9 : tensor<2x8x16xf32>
      %j9 = arith.mulf %w9, %i9 : tensor<2x8x16xf32>
      %l9 = arith.mulf %j9, %root : tensor<2x8x16xf32>
      %m9 = arith.addf %a9, %l9 : tensor<2x8x16xf32>
      %n9 = arith.mulf %l9, %cubic : tensor<2x8x16xf32>
      %o9 = arith.mulf %n9, %q9 : tensor<2x8x16xf32>
      %p9 = arith.addf %m9, %o9 : tensor<2x8x16xf32>
      %r9 = arith.mulf %n9, %h : tensor<2x8x16xf32>
      %aa = arith.mulf %r9, %h : tensor<2x8x16xf32>
      %ab = arith.addf %p9, %aa : tensor<2x8x16xf32>
      %ac = arith.mulf %r9, %h : tensor<2x8x16xf32>
      %y9 = arith.addf %ab, %ac : tensor<2x8x16xf32>
      %s10 = nn.reduce sum "b s d -> d" %y9 : tensor<2x8x16xf32> -> tensor<16xf32> loc("slope")

      // Further uses: each result has a place.
      %n0 = nn.softmax %y0 : tensor<2x8x16xf32>
      %n1 = nn.softmax %y1 : tensor<2x8x16xf32>
      %n2 = nn.softmax %y2 : tensor<2x8x16xf32>
      %n3 = nn.softmax %y3 : tensor<2x8x16xf32>
      %m4 = nn.softmax %x4 : tensor<2x8x16xf32>
      %n4 = nn.softmax %y4 : tensor<2x8x16xf32>
      %n5 = nn.softmax %y5 : tensor<2x8x16xf32>
      %n6 = nn.softmax %y6 : tensor<2x8x16xf32>
      %n7 = nn.softmax %y7 : tensor<2x8x16xf32>
      %n8 = nn.softmax %y8 : tensor<2x8x16xf32>
      %n10 = nn.softmax %y9 : tensor<2x8x16xf32>
    }
  }
}
