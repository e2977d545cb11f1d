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
// CHECK:        total = reduceBlock<Plus>(total);
// CHECK-NEXT:   if (threadIdx.x == 0)

// The bias's gradient: 8 columns of results a block, whose threads share the rows.
// CHECK-LABEL: // 8 results per block, 32 threads each; their partial sums are added in order.
// CHECK:        const int [[O:[a-z0-9_]+]] = blockIdx.x * 8 + threadIdx.x % 8;
// CHECK:        for (int [[B:[a-z0-9_]+]] = threadIdx.x / 8; [[B]] < 50; [[B]] += 32) {
// CHECK:        total = reduceLanes<Plus, 8, 32>(total);
// CHECK-NEXT:   if (threadIdx.x < 8)

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
