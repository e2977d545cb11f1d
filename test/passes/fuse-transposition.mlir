// RUN: fsdp-opt %s --fsdp-fuse | FileCheck %s

// A transposition computes what it moves, unless others need that as well; a reshape moves nothing
// and stays apart.
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[TURNED:.*]] = nn.fused %{{.*}} : {{.*}} -> tensor<2x8x3xf32> {
// CHECK: nn.repeat "n k -> b n k"
// CHECK-NEXT: arith.addf
// CHECK-NEXT: nn.rearrange "b n k -> n b k"
// CHECK-NEXT: nn.yield
// CHECK: %[[TANH:.*]]:2 = nn.fused %[[TURNED]]
// CHECK: math.tanh
// CHECK-NOT: nn.rearrange
// CHECK: }
// CHECK: nn.rearrange "n b k -> b n k" %[[TANH]]#0
// CHECK: %[[NEG:.*]] = arith.negf %[[TURNED]]
// CHECK-NEXT: nn.rearrange "n b k -> (n b) k" %[[NEG]]
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x2x3xf32>
      %bias = fsdp.input "bias" sample_dim 0 : tensor<2x3xf32>
      %h = nn.einsum "bi,ink->bnk" %x, %w : (tensor<8x4xf32>, tensor<4x2x3xf32>) -> tensor<8x2x3xf32>
      %r = nn.repeat "n k -> b n k" %bias : tensor<2x3xf32> -> tensor<8x2x3xf32>
      %a = arith.addf %h, %r : tensor<8x2x3xf32>
      %turned = nn.rearrange "b n k -> n b k" %a : tensor<8x2x3xf32> -> tensor<2x8x3xf32>
      %tanh = math.tanh %turned : tensor<2x8x3xf32>
      %back = nn.rearrange "n b k -> b n k" %tanh : tensor<2x8x3xf32> -> tensor<8x2x3xf32>
      %s0 = nn.reduce sum "n b k ->" %tanh : tensor<2x8x3xf32> -> tensor<f32>
      %e = nn.einsum "bnk,bnk->k" %back, %h : (tensor<8x2x3xf32>, tensor<8x2x3xf32>) -> tensor<3xf32>
      %e2 = nn.einsum "nbk,k->nb" %turned, %e : (tensor<2x8x3xf32>, tensor<3xf32>) -> tensor<2x8xf32>
      %neg = arith.negf %turned : tensor<2x8x3xf32>
      %flat = nn.rearrange "n b k -> (n b) k" %neg : tensor<2x8x3xf32> -> tensor<16x3xf32>
      %s1 = nn.reduce sum "m k ->" %flat : tensor<16x3xf32> -> tensor<f32>
      %s2 = nn.reduce sum "n b ->" %e2 : tensor<2x8xf32> -> tensor<f32>
      fsdp.output "a" %s0
      fsdp.output "b" %s1
      fsdp.output "c" %s2
    }
  }
}
