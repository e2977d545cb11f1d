// Fused kernels as CUDA C++: what a thread, a warp, a block works on.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<64x96xf32> unit "u" init <normal, 0.5>
fsdp.param @bias : tensor<96xf32> unit "u" init <constant, 0.0>
fsdp.param @v : tensor<96x40xf32> unit "u" init <normal, 0.5>

// A bias and a function are one kernel, 16 bytes a thread; the bias is read by its own index.
// CHECK-LABEL: static __global__ void {{[a-z_0-9]+}}_kernel(const float *bias, const float *einsum, float *
// CHECK-NEXT:   const int element = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
// CHECK-NEXT:   if (element >= 4800)
// CHECK-NEXT:     return;
// CHECK-NEXT:   const int [[ROW:[a-z_0-9]+]] = element / 96, [[COLUMN:[a-z_0-9]+]] = element % 96;
// CHECK-NEXT:   const auto einsum_v = load<4>(einsum + [[ROW]] * 96 + [[COLUMN]]);
// CHECK-NEXT:   const auto bias_v = load<4>(bias + [[COLUMN]]);
// CHECK:        #pragma unroll
// CHECK-NEXT:   for (int e = 0; e < 4; ++e) {
// CHECK:          tanhf(
// CHECK:        store(

// The largest of 40 is found by a warp; NaN stays NaN.
// CHECK-LABEL: // One warp per result.
// CHECK:        float total = -__builtin_inff();
// CHECK-NEXT:   for (int {{[a-z0-9_]+}} = threadIdx.x % 32; {{[a-z0-9_]+}} < 40; {{[a-z0-9_]+}} += 32) {
// CHECK:          total = maximum({{.*}}, total);
// CHECK-NEXT:   }
// CHECK-NEXT:   total = warpReduce<Maximum>(total);
// CHECK-NEXT:   if (threadIdx.x % 32 == 0)

// The sum of all is a block's, in double.
// CHECK-LABEL: // One block per result.
// CHECK:        double total = 0.0;
// CHECK:        total = reduceLanes<Plus, 1, {{[0-9]+}}>(total);
// CHECK-NEXT:   if (threadIdx.x == 0)

// The bias's gradient: a thread has 4 neighbouring columns, 32 threads share the rows, and each loads
// what it needs of two of them, whatever is left, before it stores anything.
// CHECK-LABEL: // 32 results per block, 32 threads for each 4 of them; their partial sums are added in order.
// CHECK-NEXT:  static __global__ void __launch_bounds__(256, 4) [[NAME:[a-z_0-9]+]]_kernel(const float *[[Y:[a-z_0-9]+]],
// CHECK:        const int [[O:[a-z0-9_]+]] = (blockIdx.x * 8 + threadIdx.x % 8) * 4;
// CHECK-NEXT:   auto total = repeated<float, 4>(0.0f);
// CHECK-NEXT:   for (int first = threadIdx.x / 8; first < 50; first += 64) {
// CHECK-NEXT:     Vector<float, 4> [[A:[a-z_0-9]+]][2];
// CHECK-NEXT:     Vector<float, 4> [[B:[a-z_0-9]+]][2];
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (int r = 0; r < 2; ++r) {
// CHECK-NEXT:       const int [[I:[a-z_0-9]+]] = first + r * 32;
// CHECK-NEXT:       if ([[I]] < 50) {
// CHECK-NEXT:         [[A]][r] = load<4>(einsum + [[I]] * 96 + [[O]]);
// CHECK-NEXT:         [[B]][r] = load<4>([[Y]] + [[I]] * 96 + [[O]]);
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (int r = 0; r < 2; ++r) {
// CHECK-NEXT:       const int [[I]] = first + r * 32;
// CHECK-NEXT:       if ([[I]] < 50) {
// CHECK-NEXT:         Vector<float, 4> [[V:[a-z_0-9]+]];
// CHECK-NEXT:         #pragma unroll
// CHECK-NEXT:         for (int e = 0; e < 4; ++e) {
// CHECK:                total[e] = total[e] + {{[a-z_0-9]+}};
// CHECK-NEXT:         }
// CHECK-NEXT:         store({{[a-z_0-9]+}} + [[I]] * 96 + [[O]], [[V]]);
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   total = reduceLanes<Plus, 8, 32>(total);
// CHECK-NEXT:   if (threadIdx.x < 8) {
// CHECK:          store(bias_grad + [[O]], {{[a-z_0-9]+}});
// CHECK:        cudaStream_t stream) {
// CHECK-NEXT:   return launchKernel([[NAME]]_kernel, /*grid=*/3, /*block=*/256,

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<100x64xf32>
  %w = fsdp.read @w : tensor<64x96xf32>
  %bias = fsdp.read @bias : tensor<96xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<100x64xf32>, tensor<64x96xf32>) -> tensor<100x96xf32>
  %rows = nn.repeat "o -> b o" %bias : tensor<96xf32> -> tensor<100x96xf32>
  %sum = arith.addf %z, %rows : tensor<100x96xf32>
  %y = math.tanh %sum : tensor<100x96xf32>
  %v = fsdp.read @v : tensor<96x40xf32>
  %p = nn.einsum "bo,of->bf" %y, %v : (tensor<100x96xf32>, tensor<96x40xf32>) -> tensor<100x40xf32>
  %most = nn.reduce max "b f -> b" %p : tensor<100x40xf32> -> tensor<100xf32>
  %square = arith.mulf %most, %most : tensor<100xf32>
  %total = nn.reduce sum "b ->" %square : tensor<100xf32> -> tensor<f64>
  %weight = arith.constant dense<100.0> : tensor<f64>
  fsdp.loss %total over %weight
}
