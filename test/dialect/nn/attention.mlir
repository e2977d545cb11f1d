// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<8x12x16x64xf32>, %k: tensor<8x4x16x64xf32>, %long: tensor<8x1x20x64xf32>,
                     %x: tensor<5x6xf64>) {
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 causal : tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32> -> tensor<8x12x16xf32>
  %out, %lse = nn.attention %q, %k, %k scale 0.125 causal : tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32> -> tensor<8x12x16xf32>
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[OUT]], %[[LSE]], %{{.*}} scale 1.250000e-01 causal : tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16xf32>
  %0:3 = nn.attention_grad %q, %k, %k, %out, %lse, %q scale 0.125 causal : tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16xf32>
  // More keys than queries; one group for all heads.
  // CHECK: nn.attention %{{.*}} scale 1.000000e+00 : tensor<8x12x16x64xf32>, tensor<8x1x20x64xf32> -> tensor<8x12x16xf32>
  %1:2 = nn.attention %q, %long, %long scale 1.0 : tensor<8x12x16x64xf32>, tensor<8x1x20x64xf32> -> tensor<8x12x16xf32>
  // CHECK: %[[TURNED:.*]] = nn.rope %{{.*}} theta 1.000000e+04 : tensor<5x6xf64>
  %2 = nn.rope %x theta 1.0e+04 : tensor<5x6xf64>
  // CHECK: nn.rope %[[TURNED]] theta 1.000000e+04 inverse : tensor<5x6xf64>
  %3 = nn.rope %2 theta 1.0e+04 inverse : tensor<5x6xf64>
  return
}
