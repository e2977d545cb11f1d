// A product with the sum over the rows of one of its operands: on the CPU a kernel adds up the rows, then the product is
// computed; on CUDA cuBLASLt has both in one call, or the kernel comes after the product. One launch on both.
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | FileCheck %s --check-prefix=CUDA
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | sed -n '/^void .*(Context &c/,/^}/p' > %t.cpp
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | sed -n '/^void .*(Context &c/,/^}/p' | diff %t.cpp -
// RUN: fsdp-translate --fsdp-to-record %t.mlir | FileCheck %s --check-prefix=RECORD

// The kernel is that of a sum alone: it knows nothing of the product.
// CHECK-LABEL: void weight(const bf16 *g, float *weight_1) {
// CHECK-NEXT:    std::fill_n(weight_1, 6, 0.0f);
// CHECK:           weight_1[o] = weight_1[o] + float(g[i * 6 + o]);
// CHECK-LABEL: void other(const float *h, float *other_1) {

// CHECK:      gemm(c, kCompute, "weight",
// CHECK-NEXT:     OperandSum{Gemm{/*m=*/4, /*n=*/6, /*k=*/16, /*batch=*/{1, 1, 1}, /*a=*/{1, 4, {}},
// CHECK-NEXT:     /*b=*/{6, 1, {}}, /*c=*/{6, 1, {}}}, /*ofRight=*/true}, reads(arena::input_x, arena::input_g),
// CHECK-NEXT:     writes(arena::weight, arena::weight_1), fused::weight);
// CHECK:      gemm(c, kCompute, "other",
// CHECK:          /*ofRight=*/false},
// CHECK-NEXT:     reads(arena::input_h, arena::input_y), writes(arena::other, arena::other_1), fused::other);

// CUDA:     cudaError_t weight(const bf16 *g, float *weight_1, cudaStream_t stream) {
// CUDA:     cudaError_t other(const float *h, float *other_1, cudaStream_t stream) {

// RECORD:      launch compute "weight" reads=[{{[0-9]+}}:128,{{[0-9]+}}:192] writes=[{{[0-9]+}}:96,{{[0-9]+}}:24]
// RECORD-NEXT: wait compute 1
// RECORD-NEXT: launch compute "other" reads=[{{[0-9]+}}:384,{{[0-9]+}}:256] writes=[{{[0-9]+}}:96,{{[0-9]+}}:24]
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xbf16> loc("x")
      %g = fsdp.input "g" sample_dim 0 : tensor<2x8x6xbf16> loc("g")
      %y = fsdp.input "y" sample_dim 0 : tensor<16x4xf32> loc("y")
      %h = fsdp.input "h" sample_dim 0 : tensor<16x6xf32> loc("h")
      %p = nn.einsum "bsi,bso->io" %x, %g : (tensor<2x8x4xbf16>, tensor<2x8x6xbf16>) -> tensor<4x6xf32> loc("weight")
      %w = arith.extf %g : tensor<2x8x6xbf16> to tensor<2x8x6xf32>
      %s = nn.reduce sum "b s o -> o" %w : tensor<2x8x6xf32> -> tensor<6xf32> loc("bias")
      %q = nn.einsum "ro,ri->oi" %h, %y : (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32> loc("other")
      %t = nn.reduce sum "r o -> o" %h : tensor<16x6xf32> -> tensor<6xf32> loc("other bias")
    }
  }
}
