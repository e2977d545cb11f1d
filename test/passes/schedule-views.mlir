// Slices that are one piece of memory, reshapes, and concatenations of what is computed for them
// move nothing.
// RUN: fsdp-opt --fsdp-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s

// CHECK: %[[H:.*]] = fsdp.buffer "exp" : <tensor<2x8x3xf32>>
// CHECK-DAG: %[[FIRST:.*]] = fsdp.subview %[[H]] at 0 : {{.*}} -> <tensor<8x3xf32>>
// CHECK-DAG: %[[LAST:.*]] = fsdp.subview %[[H]] at 24 : {{.*}} -> <tensor<8x3xf32>>
// CHECK-DAG: %[[JOINED:.*]] = fsdp.buffer "concat" : <tensor<2x24xf32>>
// CHECK-DAG: %[[NEG:.*]] = fsdp.subview %[[JOINED]] at 0 : {{.*}} -> <tensor<8x3xf32>>
// CHECK-DAG: %[[TANH:.*]] = fsdp.subview %[[JOINED]] at 24 : {{.*}} -> <tensor<8x3xf32>>
// CHECK: fsdp.launch "input x" on "input"
// CHECK: fsdp.launch "exp" on "compute" {{.*}} outs(%[[H]] :
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.exp
// CHECK-NEXT: fsdp.yield
// CHECK-NEXT: }
// CHECK-NEXT: fsdp.launch "negf" on "compute" ins(%[[FIRST]] : {{.*}}) outs(%[[NEG]] :
// CHECK: fsdp.launch "tanh" on "compute" ins(%[[LAST]] : {{.*}}) outs(%[[TANH]] :
// A range of an inner dimension is many pieces, a transposition moves elements, and two parts that
// are one value cannot both be computed in place.
// CHECK: fsdp.launch "slice" on "compute" ins(%[[JOINED]] :
// CHECK: fsdp.launch "rearrange" on "compute"
// CHECK: fsdp.launch "concat" on "compute"
// CHECK: fsdp.launch "reduce" on "compute"
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x3xf32>
      %h = math.exp %x : tensor<2x8x3xf32>
      %s0 = nn.slice %h dim 0 start 0 : tensor<2x8x3xf32> -> tensor<1x8x3xf32>
      %s1 = nn.slice %h dim 0 start 1 : tensor<2x8x3xf32> -> tensor<1x8x3xf32>
      %first = nn.rearrange "n b k -> (n b) k" %s0 : tensor<1x8x3xf32> -> tensor<8x3xf32>
      %last = nn.rearrange "n b k -> (n b) k" %s1 : tensor<1x8x3xf32> -> tensor<8x3xf32>
      %neg = arith.negf %first : tensor<8x3xf32>
      %tanh = math.tanh %last : tensor<8x3xf32>
      %n = nn.rearrange "b k -> 1 (b k)" %neg : tensor<8x3xf32> -> tensor<1x24xf32>
      %t = nn.rearrange "b k -> 1 (b k)" %tanh : tensor<8x3xf32> -> tensor<1x24xf32>
      %joined = nn.concat %n, %t dim 0 : (tensor<1x24xf32>, tensor<1x24xf32>) -> tensor<2x24xf32>
      %inner = nn.slice %joined dim 1 start 4 : tensor<2x24xf32> -> tensor<2x5xf32>
      %turned = nn.rearrange "a b -> b a" %inner : tensor<2x5xf32> -> tensor<5x2xf32>
      %twice = nn.concat %turned, %turned dim 0 : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<10x2xf32>
      %sum = nn.reduce sum "a b ->" %twice : tensor<10x2xf32> -> tensor<f32>
      fsdp.output "loss" %sum
    }
  }
}
