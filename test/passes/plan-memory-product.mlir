// A kernel that begins with a product writes the product first: only results after the first may take
// the place of what it reads, and none that of the product's sides.
// RUN: fsdp-opt --fsdp-fuse --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule %s | FileCheck %s

// CHECK: fsdp.buffer "x.softmax" offset [[X:[0-9]+]]
// CHECK: fsdp.buffer "h.softmax" offset [[H:[0-9]+]]
// CHECK-NOT: fsdp.buffer "both.0" offset [[H]]
// CHECK-NOT: fsdp.buffer "both.0" offset [[X]]
// CHECK: fsdp.buffer "both.0"
// CHECK: fsdp.buffer "both.1" offset [[H]]
// CHECK: fsdp.launch "both" on "compute"
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.fused
// CHECK: nn.einsum
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: nn.yield
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %i = fsdp.input "i" sample_dim 0 : tensor<8x8xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<8x8xf32>
      %x = nn.softmax %i : tensor<8x8xf32> loc("x")
      %h = nn.softmax %w : tensor<8x8xf32> loc("h")
      %z = nn.einsum "bi,io->bo" %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %a = arith.addf %z, %h : tensor<8x8xf32> loc("both")
      %m = arith.mulf %a, %h : tensor<8x8xf32> loc("both")
      %t = nn.einsum "bi,bo->io" %a, %m : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    }
  }
}
