// What reaches a result by way of a permutation is read at other places than its own: the result has a
// place of its own. The same operand given twice is read as either argument says.
// RUN: fsdp-opt --fsdp-plan-memory --fsdp-verify-schedule %s | FileCheck %s

// CHECK: fsdp.buffer "x" offset [[X:[0-9]+]]
// CHECK-NOT: fsdp.buffer "turned" offset [[X]]
// CHECK: fsdp.buffer "turned" offset [[T:[0-9]+]]
// CHECK-NOT: fsdp.buffer "twice" offset [[T]]
// CHECK: fsdp.buffer "twice" offset [[W:[0-9]+]]
// CHECK: fsdp.buffer "straight" offset [[W]]
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4x4xf32>>
      %turned = fsdp.buffer "turned" : !fsdp.buffer<tensor<4x4xf32>>
      %twice = fsdp.buffer "twice" : !fsdp.buffer<tensor<4x4xf32>>
      %straight = fsdp.buffer "straight" : !fsdp.buffer<tensor<4x4xf32>>
      %t0 = fsdp.launch "input" on "compute" outs(%x : !fsdp.buffer<tensor<4x4xf32>>) {
        %0 = fsdp.input "x" sample_dim 0 : tensor<4x4xf32>
        fsdp.yield %0 : tensor<4x4xf32>
      }
      %t1 = fsdp.launch "turned" on "compute" ins(%x : !fsdp.buffer<tensor<4x4xf32>>) outs(%turned : !fsdp.buffer<tensor<4x4xf32>>) {
      ^bb0(%a: tensor<4x4xf32>):
        %0 = nn.fused %a : (tensor<4x4xf32>) -> tensor<4x4xf32> {
        ^bb0(%b: tensor<4x4xf32>):
          %1 = arith.negf %b : tensor<4x4xf32>
          %2 = nn.repeat "i j -> j i" %1 : tensor<4x4xf32> -> tensor<4x4xf32>
          nn.yield %2 : tensor<4x4xf32>
        }
        fsdp.yield %0 : tensor<4x4xf32>
      }
      %t2 = fsdp.launch "twice" on "compute" ins(%turned : !fsdp.buffer<tensor<4x4xf32>>) outs(%twice : !fsdp.buffer<tensor<4x4xf32>>) {
      ^bb0(%a: tensor<4x4xf32>):
        %0 = nn.fused %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
        ^bb0(%b: tensor<4x4xf32>, %c: tensor<4x4xf32>):
          %1 = nn.repeat "i j -> j i" %b : tensor<4x4xf32> -> tensor<4x4xf32>
          %2 = arith.addf %1, %c : tensor<4x4xf32>
          nn.yield %2 : tensor<4x4xf32>
        }
        fsdp.yield %0 : tensor<4x4xf32>
      }
      %t3 = fsdp.launch "straight" on "compute" ins(%twice : !fsdp.buffer<tensor<4x4xf32>>) outs(%straight : !fsdp.buffer<tensor<4x4xf32>>) {
      ^bb0(%a: tensor<4x4xf32>):
        %0 = nn.fused %a : (tensor<4x4xf32>) -> tensor<4x4xf32> {
        ^bb0(%b: tensor<4x4xf32>):
          %1 = arith.negf %b : tensor<4x4xf32>
          %2 = math.exp %1 : tensor<4x4xf32>
          nn.yield %2 : tensor<4x4xf32>
        }
        fsdp.yield %0 : tensor<4x4xf32>
      }
      %t4 = fsdp.launch "rest" on "compute" ins(%straight : !fsdp.buffer<tensor<4x4xf32>>) {
      ^bb0(%a: tensor<4x4xf32>):
        fsdp.yield
      }
    }
  }
}
