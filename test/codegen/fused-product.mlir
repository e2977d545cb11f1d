// A kernel that takes the rows of a product: on the CPU a function of a range of rows, called
// block by block by the product, on CUDA a kernel after it; in the record one launch.
// Inputs stand for weights here, with batches of other sizes, which a verified schedule has not.
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | sed -n '/^void .*(Context &c/,/^}/p' > %t.cpp
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | sed -n '/^void .*(Context &c/,/^}/p' | diff %t.cpp -
// RUN: fsdp-translate --fsdp-to-record %t.mlir | FileCheck %s --check-prefix=RECORD

// Rows and columns are loops of their own, even where one loop would do for both.
// CHECK-LABEL: void plain(std::int64_t begin, std::int64_t end, const float *h, const float *einsum,
// CHECK-NEXT:      float *plain) {
// CHECK-NEXT:    for (std::int64_t i = begin; i < end; ++i) {
// CHECK-NEXT:      #pragma omp simd
// CHECK-NEXT:      for (std::int64_t k = 0; k < 4; ++k) {
// CHECK-NEXT:        plain[i * 4 + k] = einsum[i * 4 + k] + h[i * 4 + k];

// Where a row's number does not say what is read, its indices do.
// CHECK-LABEL: void positions(std::int64_t begin, std::int64_t end,
// CHECK:         for (std::int64_t row = begin; row < end; ++row) {
// CHECK-NEXT:      const std::int64_t i = row / 8, j = row % 8;
// CHECK:           = einsum[i * 32 + j * 4 + k] + p[j * 4 + k];

// A sum over rows begins with the first of them and continues from call to call; threads take parts
// of the columns.
// CHECK-LABEL: void sums(std::int64_t begin, std::int64_t end, fsdp::rt::ColumnPart columns,
// CHECK:         const std::int64_t first = columns.begin(4), last = columns.end(4);
// CHECK-NEXT:    if (begin == 0)
// CHECK-NEXT:      std::fill(sums_1 + first, sums_1 + last, 0.0f);
// CHECK-NEXT:    for (std::int64_t i = begin;
// CHECK:           for (std::int64_t d = first; d < last; ++d) {
// CHECK:           sums_1[d] = sums_1[d] + negf;

// A mean is divided by their number after the last.
// CHECK-LABEL: void means(std::int64_t begin, std::int64_t end, fsdp::rt::ColumnPart columns,
// CHECK:         if (end == 16) {
// CHECK-NEXT:      for (std::int64_t [[I:[a-z0-9_]+]] = first; [[I]] < last; ++[[I]]) {
// CHECK-NEXT:        means_1[[[I]]] = means_1[[[I]]] / 16.0f;

// A product of one column: what is summed over rows is not what lanes of a vector may add up.
// CHECK-LABEL: void column(std::int64_t begin, std::int64_t end, fsdp::rt::ColumnPart columns,
// CHECK:         if (columns.index > 0)
// CHECK-NEXT:      return;
// CHECK-NEXT:    if (begin == 0)
// CHECK-NEXT:      std::fill_n(column_1, 1, 0.0f);
// CHECK-NEXT:    for (std::int64_t i = begin; i < end; ++i) {
// CHECK-NEXT:      const float negf = -einsum[i];
// CHECK-NEXT:      column_0[i] = negf;
// CHECK-NEXT:      column_1[0] = column_1[0] + negf;

// CHECK: gemm(c, kCompute, "plain",
// CHECK-NEXT: Gemm{/*m=*/16, /*n=*/4, /*k=*/6,
// CHECK-NEXT: reads(arena::input_g, arena::input_w, arena::input_h),
// CHECK-NEXT: writes(arena::plain), fused::plain);
// CHECK: gemm(c, kCompute, "sums",
// CHECK-NEXT: RowSums{Gemm{/*m=*/16, /*n=*/4,
// How many rows are real is a matter of the rank.
// CHECK: gemm(c, kCompute, "masked",
// CHECK: [held = ShardLayout{1, 2, 1,
// CHECK-NEXT: 3}.held(c.coordinate(kAxisFsdp))](auto... p) { return fused::masked(held, p...); });

// Reads are the product's and the kernel's, writes the results; that the product is read is between the two.
// RECORD: launch compute "plain" reads=[{{[0-9]+}}:384,{{[0-9]+}}:96,{{[0-9]+}}:256] writes=[{{[0-9]+}}:256]
// RECORD-NEXT: launch compute "positions" reads=[{{[0-9]+}}:384,{{[0-9]+}}:96,{{[0-9]+}}:128] writes=[{{[0-9]+}}:256]
// RECORD-NEXT: launch compute "sums" reads=[{{[0-9]+}}:384,{{[0-9]+}}:96] writes=[{{[0-9]+}}:256,{{[0-9]+}}:16]
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.input "g" sample_dim 0 : tensor<2x8x6xf32> loc("g")
      %h = fsdp.input "h" sample_dim 0 : tensor<2x8x4xf32> loc("h")
      %p = fsdp.input "p" sample_dim 0 : tensor<8x4xf32> loc("p")
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32> loc("w")
      %v = fsdp.input "v" sample_dim 0 : tensor<6x1xf32> loc("v")
      %z = nn.einsum "bsf,df->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<4x6xf32>) -> tensor<2x8x4xf32>
      %a = arith.addf %z, %h : tensor<2x8x4xf32> loc("plain")
      %z1 = nn.einsum "bsf,df->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<4x6xf32>) -> tensor<2x8x4xf32>
      %r1 = nn.repeat "s d -> b s d" %p : tensor<8x4xf32> -> tensor<2x8x4xf32>
      %a1 = arith.addf %z1, %r1 : tensor<2x8x4xf32> loc("positions")
      %z2 = nn.einsum "bsf,df->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<4x6xf32>) -> tensor<2x8x4xf32>
      %n2 = arith.negf %z2 : tensor<2x8x4xf32>
      %s2 = nn.reduce sum "b s d -> d" %n2 : tensor<2x8x4xf32> -> tensor<4xf32> loc("sums")
      %z3 = nn.einsum "bsf,df->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<4x6xf32>) -> tensor<2x8x4xf32>
      %n3 = arith.negf %z3 : tensor<2x8x4xf32>
      %s3 = nn.reduce mean "b s d -> d" %n3 : tensor<2x8x4xf32> -> tensor<4xf32> loc("means")
      %z4 = nn.einsum "bsf,fd->bsd" %g, %v : (tensor<2x8x6xf32>, tensor<6x1xf32>) -> tensor<2x8x1xf32>
      %n4 = arith.negf %z4 : tensor<2x8x1xf32>
      %s4 = nn.reduce sum "b s d -> d" %n4 : tensor<2x8x1xf32> -> tensor<1xf32> loc("column")
      %z5 = nn.einsum "bsf,df->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<4x6xf32>) -> tensor<2x8x4xf32>
      %m5 = fsdp.mask_padding %z5 dim 0 of 3 over ["fsdp"] fill 0.0 : tensor<2x8x4xf32> loc("masked")
      // A result that is used further on has a place in which the product can be computed.
      %u2 = nn.softmax %n2 : tensor<2x8x4xf32>
      %u3 = nn.softmax %n3 : tensor<2x8x4xf32>
      %u4 = nn.softmax %n4 : tensor<2x8x1xf32>
    }
  }
}
