// RUN: fsdp-opt %s --fsdp-join-all-reduces | FileCheck %s
// RUN: fsdp-opt %s --fsdp-join-all-reduces=limit=63 | FileCheck %s --check-prefix=SMALL
// RUN: fsdp-opt %s --fsdp-join-all-reduces=limit=0 > %t.none.mlir
// RUN: fsdp-opt %s | diff - %t.none.mlir
// RUN: fsdp-opt %s --fsdp-join-all-reduces --fsdp-join-all-reduces > %t.twice.mlir
// RUN: fsdp-opt %s --fsdp-join-all-reduces | diff - %t.twice.mlir
// RUN: bash -c 'fsdp-opt %s --fsdp-join-all-reduces=limit=-1 2>&1; true' | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: '-1', expected an integer from 0 to

// RUN: fsdp-opt %s --fsdp-join-all-reduces --fsdp-fuse --fsdp-schedule | FileCheck %s --check-prefix=PLACES

module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.program @all role {} {
  // Two sums of which the second needs nothing of the first are one; what uses the first comes after it.
  // CHECK-LABEL: fsdp.segment @two
  // CHECK: %[[X:.*]] = fsdp.input
  // CHECK: %[[A:.*]] = nn.reduce sum "a b -> a"
  // CHECK-NEXT: %[[S:.*]] = arith.mulf %[[X]], %[[X]]
  // CHECK-NEXT: %[[B:.*]] = nn.reduce sum "a b -> a" %[[S]]
  // CHECK-NEXT: %[[ALL:.*]] = fsdp.flatten %[[A]], %[[B]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  // CHECK-NEXT: %[[R:.*]] = fsdp.all_reduce sum %[[ALL]] over ["tensor"] : tensor<8xf32>
  // CHECK-NEXT: %[[FIRST:.*]] = fsdp.view %[[R]] at 0 : tensor<8xf32> -> tensor<4xf32>
  // CHECK-NEXT: %[[SECOND:.*]] = fsdp.view %[[R]] at 4 : tensor<8xf32> -> tensor<4xf32>
  // CHECK-NEXT: %[[E:.*]] = math.exp %[[FIRST]]
  // CHECK-NEXT: arith.addf %[[E]], %[[SECOND]]
  // Nothing is copied: both are computed in the buffer that is reduced.
  // PLACES-LABEL: fsdp.segment @two
  // PLACES-NOT: fsdp.flatten
  // PLACES: fsdp.all_reduce
  // PLACES-NOT: fsdp.flatten
  // PLACES-LABEL: fsdp.segment @limit
  fsdp.segment @two evaluate next [@two, @limit, @apart] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x2xf32>
    %a = nn.reduce sum "a b -> a" %x : tensor<4x2xf32> -> tensor<4xf32>
    %ra = fsdp.all_reduce sum %a over ["tensor"] : tensor<4xf32>
    %e = math.exp %ra : tensor<4xf32>
    %s = arith.mulf %x, %x : tensor<4x2xf32>
    %b = nn.reduce sum "a b -> a" %s : tensor<4x2xf32> -> tensor<4xf32>
    %rb = fsdp.all_reduce sum %b over ["tensor"] : tensor<4xf32>
    %y = arith.addf %e, %rb : tensor<4xf32>
    %sum = nn.reduce sum "a ->" %y : tensor<4xf32> -> tensor<f32>
    fsdp.output "y" %sum
  }
  // Three of 32 bytes are more than 63 together, two as well.
  // CHECK-LABEL: fsdp.segment @limit
  // CHECK: fsdp.all_reduce max {{.*}} : tensor<24xf32>
  // CHECK-NOT: fsdp.all_reduce
  // SMALL-LABEL: fsdp.segment @limit
  // SMALL-COUNT-3: fsdp.all_reduce max {{.*}} : tensor<8xf32>
  fsdp.segment @limit evaluate next [@two, @limit, @apart] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x2xf32>
    %flat = nn.rearrange "a b -> (a b)" %x : tensor<4x2xf32> -> tensor<8xf32>
    %a = math.exp %flat : tensor<8xf32>
    %b = math.tanh %flat : tensor<8xf32>
    %c = math.sin %flat : tensor<8xf32>
    %ra = fsdp.all_reduce max %a over ["fsdp", "tensor"] : tensor<8xf32>
    %rb = fsdp.all_reduce max %b over ["fsdp", "tensor"] : tensor<8xf32>
    %rc = fsdp.all_reduce max %c over ["fsdp", "tensor"] : tensor<8xf32>
    %y = arith.addf %ra, %rb : tensor<8xf32>
    %z = arith.addf %y, %rc : tensor<8xf32>
    %sum = nn.reduce sum "a ->" %z : tensor<8xf32> -> tensor<f32>
    fsdp.output "z" %sum
  }
  // CHECK-LABEL: fsdp.segment @apart
  // CHECK-NOT: fsdp.flatten
  // CHECK-NOT: fsdp.view
  fsdp.segment @apart evaluate next [@two, @limit, @apart] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x2xf32>
    %a = nn.reduce sum "a b -> a" %x : tensor<4x2xf32> -> tensor<4xf32>
    %b = math.exp %a : tensor<4xf32>
    // One that depends on the other.
    %ra = fsdp.all_reduce sum %a over ["tensor"] : tensor<4xf32>
    %t = math.tanh %ra : tensor<4xf32>
    %rt = fsdp.all_reduce sum %t over ["tensor"] : tensor<4xf32>
    // Other axes, another kind.
    %rb = fsdp.all_reduce sum %b over ["fsdp"] : tensor<4xf32>
    %c = math.tanh %b : tensor<4xf32>
    %rc = fsdp.all_reduce max %c over ["fsdp"] : tensor<4xf32>
    // Behind a product, which would be waited for.
    %d = math.sin %b : tensor<4xf32>
    %rd = fsdp.all_reduce max %d over ["tensor"] : tensor<4xf32>
    %p = nn.einsum "ab,ab->a" %x, %x : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4xf32>
    %rp = fsdp.all_reduce max %p over ["tensor"] : tensor<4xf32>
    // Another type.
    %w = arith.extf %c : tensor<4xf32> to tensor<4xf64>
    %rw = fsdp.all_reduce max %w over ["tensor"] : tensor<4xf64>
    // Numbers, for which compute does not wait.
    %n = nn.reduce sum "a ->" %a : tensor<4xf32> -> tensor<f32>
    %m = nn.reduce sum "a ->" %b : tensor<4xf32> -> tensor<f32>
    %rn = fsdp.all_reduce sum %n over ["tensor"] : tensor<f32>
    %rm = fsdp.all_reduce sum %m over ["tensor"] : tensor<f32>
    // What is computed nowhere, and would be copied.
    %v = nn.slice %x dim 0 start 0 : tensor<4x2xf32> -> tensor<1x2xf32>
    %rx = fsdp.all_reduce sum %x over ["tensor"] : tensor<4x2xf32>
    %rv = fsdp.all_reduce sum %v over ["tensor"] : tensor<1x2xf32>
  }
}
}
