// Reductions whose results are neighbours in memory: what a thread, a block, several blocks have of them.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s

// Few terms are those of one thread, which has 16 bytes of results; it stores them at once.
// CHECK-LABEL: // 4 results per thread.
// CHECK-NEXT:  static __global__ void reduce_kernel(const float *a, float *reduce) {
// CHECK-NEXT:    const int c = (blockIdx.x * 32 + threadIdx.x) * 4;
// CHECK-NEXT:    if (c >= 96)
// CHECK-NEXT:      return;
// CHECK-NEXT:    auto total = repeated<float, 4>(0.0f);
// CHECK-NEXT:    for (int first = 0; first < 16; first += 4) {
// CHECK-NEXT:      Vector<float, 4> a_v[4];
// CHECK-NEXT:      #pragma unroll
// CHECK-NEXT:      for (int r = 0; r < 4; ++r) {
// CHECK-NEXT:        const int i = first + r;
// CHECK-NEXT:        a_v[r] = load<4>(a + i * 96 + c);
// CHECK-NEXT:      }
// CHECK:           total[e] = total[e] + a_v[r][e];
// CHECK:         store(reduce + c, reduce_v);

// Seven columns are no vectors: an element at a time, four of them in flight.
// CHECK-LABEL: // 8 results per block, 32 threads for each; their partial sums are added in order.
// CHECK:         if (c < 7) {
// CHECK-NEXT:      for (int first = threadIdx.x / 8; first < 100; first += 128) {
// CHECK-NEXT:        float b_v[4];
// CHECK:               if (i < 100) {
// CHECK-NEXT:            b_v[r] = b[i * 7 + c];
// CHECK:               if (i < 100) {
// CHECK-NEXT:            total = total + b_v[r];
// CHECK:         total = reduceLanes<Plus, 8, 32>(total);
// CHECK-NEXT:    if (threadIdx.x < 8 && c < 7)
// CHECK-NEXT:      reduce_2[c] = total;

// Many rows of few columns: blocks share them. What they have is in the workspace, and combined in order.
// CHECK-LABEL: // 64 results per block, 16 threads for each 4 of them; their partial sums are added in order.
// CHECK-NEXT:  // 105 blocks have the same results; a second kernel adds what they have, in order.
// CHECK-NEXT:  static __global__ void __launch_bounds__(256, 4) reduce_3_kernel(const float *c_2, float *parts) {
// CHECK:         for (int first = blockIdx.y * 64 + threadIdx.x / 16; first < 20000; first += 6720) {
// CHECK:         total = reduceLanes<Plus, 16, 16>(total);
// CHECK-NEXT:    if (threadIdx.x < 16)
// CHECK-NEXT:      store(parts + blockIdx.y * 64 + c, total);
// CHECK-NEXT:  }
// CHECK-EMPTY:
// CHECK-NEXT:  static __global__ void reduce_3_total_kernel(const float *parts, float *reduce_3) {
// CHECK-NEXT:    const int c = blockIdx.x * 32 + threadIdx.x % 32;
// CHECK-NEXT:    const float total = combineStripes<Plus, 32, 32>(0.0f, parts + c, 105, 64, true);
// CHECK-NEXT:    if (threadIdx.x < 32)
// CHECK-NEXT:      reduce_3[c] = total;
// CHECK-NEXT:  }
// CHECK-EMPTY:
// CHECK-NEXT:  cudaError_t reduce_3(const float *c_2, float *reduce_3, fsdp::rt::WorkStream stream) {
// CHECK-NEXT:    float *parts = nullptr;
// CHECK-NEXT:    cudaError_t status = stream.workspace->reserve(6720 * sizeof(float), parts);
// CHECK-NEXT:    if (status != cudaSuccess)
// CHECK-NEXT:      return status;
// CHECK-NEXT:    status = launchKernel(reduce_3_kernel, /*grid=*/dim3(1, 105), /*block=*/256, /*sharedBytes=*/0,
// CHECK-NEXT:        stream, c_2, parts);
// CHECK-NEXT:    if (status != cudaSuccess)
// CHECK-NEXT:      return status;
// CHECK-NEXT:    return launchKernel(reduce_3_total_kernel, /*grid=*/2, /*block=*/1024, /*sharedBytes=*/0, stream,
// CHECK-NEXT:        parts, reduce_3);

// The largest are found likewise.
// CHECK-LABEL: reduce_4_kernel(const float *c_2, float *parts) {
// CHECK:         auto total = repeated<float, 4>(-__builtin_inff());
// CHECK:         total[e] = maximum(c_v[r][e], total[e]);
// CHECK:         total = reduceLanes<Maximum, 16, 16>(total);
// CHECK:         combineStripes<Maximum, 32, 32>(-__builtin_inff(), parts + c, 105, 64, true);

// Results of two dimensions, terms of two: a vector never leaves the innermost.
// CHECK-LABEL: reduce_5_kernel(const float *d, float *parts) {
// CHECK-NEXT:    const int result = (blockIdx.x * 32 + threadIdx.x % 32) * 4;
// CHECK-NEXT:    const int h = result / 20, c = result % 20;
// CHECK:         if (result < 240) {
// CHECK:         const int term = first + r_2 * 8;
// CHECK-NEXT:    if (term < 3000) {
// CHECK-NEXT:      const int i = term / 100, r = term % 100;
// CHECK-NEXT:      d_v[r_2] = load<4>(d + i * 24000 + h * 2000 + r * 20 + c);
// CHECK:         if (threadIdx.x < 32 && result < 240)
// CHECK-NEXT:      store(parts + blockIdx.y * 240 + result, total);
// CHECK:         combineStripes<Plus, 32, 8>(0.0f, parts + result, 47, 240, result < 240);
// CHECK-NEXT:    if (threadIdx.x < 32 && result < 240)
// CHECK-NEXT:      reduce_5[h * 20 + c] = total;

fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @few : tensor<96xf32> unit "u" init <constant, 0.0>
fsdp.param @odd : tensor<7xf32> unit "u" init <constant, 0.0>
fsdp.param @long : tensor<64xf32> unit "u" init <constant, 0.0>
fsdp.param @most : tensor<64xf32> unit "u" init <constant, 0.0>
fsdp.param @mean : tensor<12x20xf32> unit "u" init <constant, 0.0>

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %a = fsdp.input "a" sample_dim 0 : tensor<2x8x96xf32>
  %b = fsdp.input "b" sample_dim 0 : tensor<2x50x7xf32>
  %c = fsdp.input "c" sample_dim 0 : tensor<2x10000x64xf32>
  %d = fsdp.input "d" sample_dim 0 : tensor<2x15x12x100x20xf32>
  %few = fsdp.read @few : tensor<96xf32>
  %odd = fsdp.read @odd : tensor<7xf32>
  %long = fsdp.read @long : tensor<64xf32>
  %most = fsdp.read @most : tensor<64xf32>
  %mean = fsdp.read @mean : tensor<12x20xf32>
  %sa = nn.reduce sum "s r c -> c" %a : tensor<2x8x96xf32> -> tensor<96xf32>
  %sb = nn.reduce sum "s r c -> c" %b : tensor<2x50x7xf32> -> tensor<7xf32>
  %sc = nn.reduce sum "s r c -> c" %c : tensor<2x10000x64xf32> -> tensor<64xf32>
  %mc = nn.reduce max "s r c -> c" %c : tensor<2x10000x64xf32> -> tensor<64xf32>
  %md = nn.reduce mean "s a h r c -> h c" %d : tensor<2x15x12x100x20xf32> -> tensor<12x20xf32>
  %pa = arith.mulf %sa, %few : tensor<96xf32>
  %pb = arith.mulf %sb, %odd : tensor<7xf32>
  %pc = arith.mulf %sc, %long : tensor<64xf32>
  %pm = arith.mulf %mc, %most : tensor<64xf32>
  %pd = arith.mulf %md, %mean : tensor<12x20xf32>
  %la = nn.reduce sum "c ->" %pa : tensor<96xf32> -> tensor<f64>
  %lb = nn.reduce sum "c ->" %pb : tensor<7xf32> -> tensor<f64>
  %lc = nn.reduce sum "c ->" %pc : tensor<64xf32> -> tensor<f64>
  %lm = nn.reduce sum "c ->" %pm : tensor<64xf32> -> tensor<f64>
  %ld = nn.reduce sum "h c ->" %pd : tensor<12x20xf32> -> tensor<f64>
  %l1 = arith.addf %la, %lb : tensor<f64>
  %l2 = arith.addf %l1, %lc : tensor<f64>
  %l3 = arith.addf %l2, %lm : tensor<f64>
  %l4 = arith.addf %l3, %ld : tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %l4 over %weight
}
