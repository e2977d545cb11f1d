// Contractions: matrix products with strides where their dimensions collapse, loops otherwise.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s

// Products without a matrix, and in double, are loops. So is what reads a constant.
// CHECK-LABEL: void dot(
// CHECK:         for (std::int64_t b = 0; b < 4; ++b) {
// CHECK-NEXT:      float total = 0.0f;
// CHECK-NEXT:      for (std::int64_t d = 0; d < 6; ++d) {
// CHECK-NEXT:        total = total + (x[b * 6 + d] * y[b * 6 + d]);
// CHECK:           dot[b] = total;
// CHECK-LABEL: void elementwise(
// CHECK:         #pragma omp simd
// CHECK-NEXT:    for (std::int64_t i = 0; i < 24; ++i) {
// CHECK-NEXT:      product[i] = x[i] * y[i];
// CHECK-LABEL: void constant(
// CHECK:         total = total + (x[b * 6 + d] * 2.0f);

// Rows b s and columns h e each collapse to one dimension.
// CHECK: gemm(c, kCompute, "collapse",
// CHECK-NEXT: Gemm{/*m=*/6, /*n=*/20, /*k=*/6, /*batch=*/{1, 1, 1}, /*a=*/{6, 1, {{{}}}}, /*b=*/{20, 1, {{{}}}},
// CHECK-NEXT: /*c=*/{20, 1, {{{}}}}}
// A transposed operand, and a transposed result.
// CHECK: gemm(c, kCompute, "transposed",
// CHECK-NEXT: Gemm{/*m=*/4, /*n=*/4, /*k=*/6, /*batch=*/{1, 1, 1}, /*a=*/{6, 1, {{{}}}}, /*b=*/{1, 6, {{{}}}},
// CHECK: gemm(c, kCompute, "batch",
// CHECK-NEXT: Gemm{/*m=*/3, /*n=*/3, /*k=*/5, /*batch=*/{2, 4, 1}, /*a=*/{20, 1, {60, 5, 0}},
// CHECK-NEXT: /*b=*/{1, 20, {60, 5, 0}}, /*c=*/{3, 1, {36, 9, 0}}}
// CHECK: launch(c, kCompute, "dot"
// CHECK: launch(c, kCompute, "elementwise"
// CHECK: launch(c, kCompute, "constant"

module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 4096 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<2x3x6xf32>>
      %b = fsdp.buffer "b" offset 320 : !fsdp.buffer<tensor<6x4x5xf32>>
      %ab = fsdp.buffer "ab" offset 832 : !fsdp.buffer<tensor<2x3x4x5xf32>>
      %x = fsdp.buffer "x" offset 1344 : !fsdp.buffer<tensor<4x6xf32>>
      %y = fsdp.buffer "y" offset 1472 : !fsdp.buffer<tensor<4x6xf32>>
      %g = fsdp.buffer "g" offset 1600 : !fsdp.buffer<tensor<4x4xf32>>
      %q = fsdp.buffer "q" offset 1664 : !fsdp.buffer<tensor<2x3x4x5xf32>>
      %p = fsdp.buffer "p" offset 2176 : !fsdp.buffer<tensor<2x4x3x3xf32>>
      %d = fsdp.buffer "dot" offset 2496 : !fsdp.buffer<tensor<4xf32>>
      %e = fsdp.buffer "product" offset 2560 : !fsdp.buffer<tensor<4x6xf32>>
      %t0 = fsdp.launch "collapse" on "compute" ins(%a, %b : !fsdp.buffer<tensor<2x3x6xf32>>, !fsdp.buffer<tensor<6x4x5xf32>>) outs(%ab : !fsdp.buffer<tensor<2x3x4x5xf32>>) {
      ^bb0(%l: tensor<2x3x6xf32>, %r: tensor<6x4x5xf32>):
        %v = nn.einsum "bsd,dhe->bshe" %l, %r : (tensor<2x3x6xf32>, tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
        fsdp.yield %v : tensor<2x3x4x5xf32>
      }
      %t1 = fsdp.launch "transposed" on "compute" ins(%x, %y : !fsdp.buffer<tensor<4x6xf32>>, !fsdp.buffer<tensor<4x6xf32>>) outs(%g : !fsdp.buffer<tensor<4x4xf32>>) {
      ^bb0(%l: tensor<4x6xf32>, %r: tensor<4x6xf32>):
        %v = nn.einsum "ad,bd->ab" %l, %r : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
        fsdp.yield %v : tensor<4x4xf32>
      }
      %t2 = fsdp.launch "batch" on "compute" ins(%q, %q : !fsdp.buffer<tensor<2x3x4x5xf32>>, !fsdp.buffer<tensor<2x3x4x5xf32>>) outs(%p : !fsdp.buffer<tensor<2x4x3x3xf32>>) {
      ^bb0(%l: tensor<2x3x4x5xf32>, %r: tensor<2x3x4x5xf32>):
        %v = nn.einsum "bshe,bthe->bhst" %l, %r : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x4x3x3xf32>
        fsdp.yield %v : tensor<2x4x3x3xf32>
      }
      %t3 = fsdp.launch "dot" on "compute" ins(%x, %y : !fsdp.buffer<tensor<4x6xf32>>, !fsdp.buffer<tensor<4x6xf32>>) outs(%d : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%l: tensor<4x6xf32>, %r: tensor<4x6xf32>):
        %v = nn.einsum "bd,bd->b" %l, %r : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
      %t4 = fsdp.launch "elementwise" on "compute" ins(%x, %y : !fsdp.buffer<tensor<4x6xf32>>, !fsdp.buffer<tensor<4x6xf32>>) outs(%e : !fsdp.buffer<tensor<4x6xf32>>) {
      ^bb0(%l: tensor<4x6xf32>, %r: tensor<4x6xf32>):
        %v = nn.einsum "bd,bd->bd" %l, %r : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
        fsdp.yield %v : tensor<4x6xf32>
      }
      %t5 = fsdp.launch "constant" on "compute" ins(%x : !fsdp.buffer<tensor<4x6xf32>>) outs(%d : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%l: tensor<4x6xf32>):
        %c = arith.constant dense<2.0> : tensor<6xf32>
        %v = nn.einsum "bd,d->b" %l, %c : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
    }
  }
}
