// Kernels that write over what they read: rows, and elementwise chains that end in a reduction.
// RUN: fsdp-opt --fsdp-plan-memory --fsdp-verify-schedule %s | FileCheck %s

// CHECK: fsdp.segment @train
// CHECK: fsdp.buffer "x" offset [[X:[0-9]+]]
// CHECK: fsdp.buffer "softmax" offset [[X]]
// CHECK: fsdp.buffer "rope" offset [[X]]
// CHECK: fsdp.buffer "scan" offset [[X]]
// CHECK: fsdp.buffer "norm" offset [[X]]
// CHECK: fsdp.buffer "exp" offset [[X]]
// CHECK-NOT: fsdp.buffer "columns" offset [[X]]
// CHECK: fsdp.buffer "columns"
// What is summed as well as taken element by element stays.
// CHECK-NOT: fsdp.buffer "apart" offset [[X]]
// CHECK: fsdp.buffer "apart"
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<8x4xf32>>
      %softmax = fsdp.buffer "softmax" : !fsdp.buffer<tensor<8x4xf32>>
      %rope = fsdp.buffer "rope" : !fsdp.buffer<tensor<8x4xf32>>
      %scan = fsdp.buffer "scan" : !fsdp.buffer<tensor<8x4xf32>>
      %scale = fsdp.buffer "scale" : !fsdp.buffer<tensor<4xf32>>
      %norm = fsdp.buffer "norm" : !fsdp.buffer<tensor<8x4xf32>>
      %rstd = fsdp.buffer "rstd" : !fsdp.buffer<tensor<8xf32>>
      %exp = fsdp.buffer "exp" : !fsdp.buffer<tensor<8x4xf32>>
      %columns = fsdp.buffer "columns" : !fsdp.buffer<tensor<4xf32>>
      %apart = fsdp.buffer "apart" : !fsdp.buffer<tensor<8x4xf32>>
      %rows = fsdp.buffer "rows" : !fsdp.buffer<tensor<8xf32>>
      %t0 = fsdp.launch "input" on "compute" outs(%x : !fsdp.buffer<tensor<8x4xf32>>) {
        %0 = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
        fsdp.yield %0 : tensor<8x4xf32>
      }
      %t1 = fsdp.launch "softmax" on "compute" ins(%x : !fsdp.buffer<tensor<8x4xf32>>) outs(%softmax : !fsdp.buffer<tensor<8x4xf32>>) {
      ^bb0(%a: tensor<8x4xf32>):
        %0 = nn.softmax %a : tensor<8x4xf32>
        fsdp.yield %0 : tensor<8x4xf32>
      }
      %t2 = fsdp.launch "rope" on "compute" ins(%softmax : !fsdp.buffer<tensor<8x4xf32>>) outs(%rope : !fsdp.buffer<tensor<8x4xf32>>) {
      ^bb0(%a: tensor<8x4xf32>):
        %0 = nn.rope %a dim 0 theta 1.0e+04 : tensor<8x4xf32>
        fsdp.yield %0 : tensor<8x4xf32>
      }
      %t2b = fsdp.launch "scan" on "compute" ins(%rope : !fsdp.buffer<tensor<8x4xf32>>) outs(%scan : !fsdp.buffer<tensor<8x4xf32>>) {
      ^bb0(%a: tensor<8x4xf32>):
        %0 = nn.scan_sum "b d" along "d" %a exclusive : tensor<8x4xf32>
        fsdp.yield %0 : tensor<8x4xf32>
      }
      %t3 = fsdp.launch "scale" on "compute" outs(%scale : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<1.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %t4 = fsdp.launch "norm" on "compute" ins(%scan, %scale : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%norm, %rstd : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8x4xf32>, %b: tensor<4xf32>):
        %0, %1 = nn.rms_norm %a, %b eps 1.0e-05 : tensor<8x4xf32>, tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0, %1 : tensor<8x4xf32>, tensor<8xf32>
      }
      %t5 = fsdp.launch "exp" on "compute" ins(%norm : !fsdp.buffer<tensor<8x4xf32>>) outs(%exp, %columns : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<8x4xf32>):
        %0:2 = nn.fused %a : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
        ^bb0(%b: tensor<8x4xf32>):
          %1 = math.exp %b : tensor<8x4xf32>
          %2 = nn.reduce sum "i j -> j" %1 : tensor<8x4xf32> -> tensor<4xf32>
          nn.yield %1, %2 : tensor<8x4xf32>, tensor<4xf32>
        }
        fsdp.yield %0#0, %0#1 : tensor<8x4xf32>, tensor<4xf32>
      }
      // The operand is summed as well as taken element by element.
      %t6 = fsdp.launch "apart" on "compute" ins(%exp : !fsdp.buffer<tensor<8x4xf32>>) outs(%apart, %rows : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8x4xf32>):
        %0:2 = nn.fused %a : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
        ^bb0(%b: tensor<8x4xf32>):
          %1 = math.exp %b : tensor<8x4xf32>
          %2 = nn.reduce sum "i j -> i" %b : tensor<8x4xf32> -> tensor<8xf32>
          nn.yield %1, %2 : tensor<8x4xf32>, tensor<8xf32>
        }
        fsdp.yield %0#0, %0#1 : tensor<8x4xf32>, tensor<8xf32>
      }
      %t7 = fsdp.launch "rest" on "compute" ins(%apart, %rows, %columns, %rstd : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8x4xf32>, %b: tensor<8xf32>, %c: tensor<4xf32>, %d: tensor<8xf32>):
        fsdp.yield
      }
    }
  }
}
