// Reductions whose terms are neighbours in memory, by how many there are: those of a warp, of a block, of several blocks.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s

// 131071 terms are one block's.
// CHECK-LABEL: // One block per result.
// CHECK-NEXT:  static __global__ void reduce_kernel(
// CHECK:         for (int c = threadIdx.x; c < 131071; c += 1024) {

// One more, and blocks share them: 32, of whose threads each has at least 16.
// CHECK-LABEL: // 32 blocks per result; a second kernel adds what they have, in order.
// CHECK-NEXT:  static __global__ void reduce_2_kernel(const float *b, float *parts) {
// CHECK-NEXT:    const int r = blockIdx.x;
// CHECK-NEXT:    float total = 0.0f;
// CHECK-NEXT:    for (int c = blockIdx.y * 256 + threadIdx.x; c < 131072; c += 8192) {
// CHECK:         total = reduceLanes<Plus, 1, {{[0-9]+}}>(total);
// CHECK-NEXT:    if (threadIdx.x == 0)
// CHECK-NEXT:      parts[blockIdx.y * 2 + blockIdx.x] = total;
// CHECK-LABEL: static __global__ void reduce_2_total_kernel(const float *parts, float *{{[a-z_0-9]+}}) {
// CHECK:         const float total = combineStripes<Plus, 32, 8>(0.0f, parts + r, 32, 2, r < 2);
// CHECK:         if (threadIdx.x < 32 && r < 2)
// CHECK:         launchKernel(reduce_2_kernel, /*grid=*/dim3(2, 32), /*block=*/256,
// CHECK:         launchKernel(reduce_2_total_kernel, /*grid=*/1, /*block=*/256,

// No more than keep a device busy: 264 for one result, 88 for each of three.
// CHECK-LABEL: // 264 blocks per result; a second kernel adds what they have, in order.
// CHECK:         total = reduceLanes<Maximum, 1, {{[0-9]+}}>(total);
// CHECK-LABEL: // 88 blocks per result; a second kernel adds what they have, in order.

fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @one : tensor<2xf32> unit "u" init <constant, 1.0>
fsdp.param @two : tensor<2xf32> unit "u" init <constant, 1.0>
fsdp.param @most : tensor<1xf32> unit "u" init <constant, 1.0>
fsdp.param @three : tensor<3xf32> unit "u" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %a = fsdp.input "a" sample_dim 0 : tensor<2x131071xf32>
  %b = fsdp.input "b" sample_dim 0 : tensor<2x131072xf32>
  %c = fsdp.input "c" sample_dim 0 : tensor<2x1x2000000xf32>
  %d = fsdp.input "d" sample_dim 0 : tensor<2x3x1000000xf32>
  %one = fsdp.read @one : tensor<2xf32>
  %two = fsdp.read @two : tensor<2xf32>
  %most = fsdp.read @most : tensor<1xf32>
  %three = fsdp.read @three : tensor<3xf32>
  %sa = nn.reduce sum "r c -> r" %a : tensor<2x131071xf32> -> tensor<2xf32>
  %sb = nn.reduce sum "r c -> r" %b : tensor<2x131072xf32> -> tensor<2xf32>
  %mc = nn.reduce max "s r c -> r" %c : tensor<2x1x2000000xf32> -> tensor<1xf32>
  %sd = nn.reduce sum "s r c -> r" %d : tensor<2x3x1000000xf32> -> tensor<3xf32>
  %pa = arith.mulf %sa, %one : tensor<2xf32>
  %pb = arith.mulf %sb, %two : tensor<2xf32>
  %pc = arith.mulf %mc, %most : tensor<1xf32>
  %pd = arith.mulf %sd, %three : tensor<3xf32>
  %la = nn.reduce sum "r ->" %pa : tensor<2xf32> -> tensor<f64>
  %lb = nn.reduce sum "r ->" %pb : tensor<2xf32> -> tensor<f64>
  %lc = nn.reduce sum "r ->" %pc : tensor<1xf32> -> tensor<f64>
  %ld = nn.reduce sum "r ->" %pd : tensor<3xf32> -> tensor<f64>
  %l1 = arith.addf %la, %lb : tensor<f64>
  %l2 = arith.addf %l1, %lc : tensor<f64>
  %l3 = arith.addf %l2, %ld : tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %l3 over %weight
}
