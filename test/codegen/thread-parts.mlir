// Loops of the CPU whose iterations several threads share.
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | FileCheck %s

// Columns that are added up: all rows of each, in order.
// CHECK-LABEL: void sums_reduce(const float *w, float *reduce) {
// CHECK-NEXT:    forEachColumnPart(std::int64_t(512), 128, [&](std::int64_t first, std::int64_t last) {
// CHECK-NEXT:      std::fill(reduce + first, reduce + last, 0.0f);
// CHECK-NEXT:      for (std::int64_t b = 0; b < 128; ++b) {
// CHECK-NEXT:        #pragma omp simd
// CHECK-NEXT:        for (std::int64_t d = first; d < last; ++d) {
// CHECK-NEXT:          reduce[d] = reduce[d] + w[b * 512 + d];

// Elements: whole lines of the caches.
// CHECK-LABEL: void elements(const float *w, float *elements) {
// CHECK-NEXT:    forEachPart(std::int64_t(65536), 1, 64, [&](std::int64_t first, std::int64_t last) {

// Rows.
// CHECK-LABEL: void rows_reduce(const float *w, float *reduce) {
// CHECK-NEXT:    forEachPart(std::int64_t(128), 512, [&](std::int64_t first, std::int64_t last) {

// Too few to share.
// CHECK-LABEL: void few_reduce(
// CHECK-NEXT:    std::fill_n(reduce, 4, 0.0f);
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %w = fsdp.input "w" sample_dim 0 : tensor<128x512xf32> loc("w")
      %a = fsdp.input "a" sample_dim 0 : tensor<6x4xf32> loc("a")
      %s = nn.reduce sum "b d -> d" %w : tensor<128x512xf32> -> tensor<512xf32> loc("sums")
      %e = arith.negf %w : tensor<128x512xf32> loc("elements")
      %r = nn.reduce sum "b d -> b" %w : tensor<128x512xf32> -> tensor<128xf32> loc("rows")
      %f = nn.reduce sum "b d -> d" %a : tensor<6x4xf32> -> tensor<4xf32> loc("few")
    }
  }
}
