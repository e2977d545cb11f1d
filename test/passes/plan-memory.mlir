// Offsets, arena, reuse and work in place.
// RUN: fsdp-opt --fsdp-plan-memory --fsdp-verify-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-plan-memory %s | fsdp-opt --fsdp-plan-memory | FileCheck %s

// Persistent buffers first, in multiples of 64 bytes: 128 + 64 + 256 of x and a.
// CHECK: fsdp.program @all role {} arena 704
// CHECK: fsdp.buffer "step_state" persistent offset 0
// CHECK: fsdp.buffer "state" persistent offset 128
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %persistent = fsdp.buffer "state" persistent : !fsdp.buffer<tensor<3xf32>>
    // The elementwise results take the places of their operands, the reshaped one cannot.
    // CHECK: fsdp.segment @train
    // CHECK: fsdp.buffer "x" offset [[X:[0-9]+]]
    // CHECK: fsdp.buffer "neg" offset [[X]]
    // CHECK: fsdp.buffer "fused" offset [[X]]
    // CHECK: fsdp.buffer "transposed" offset [[T:[0-9]+]]
    // CHECK-NOT: fsdp.buffer "sum" offset [[T]]
    // CHECK: fsdp.buffer "sum"
    fsdp.segment @train train next [@train, @evaluate] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<8x8xf32>>
      %neg = fsdp.buffer "neg" : !fsdp.buffer<tensor<8x8xf32>>
      %fused = fsdp.buffer "fused" : !fsdp.buffer<tensor<8x8xf32>>
      %transposed = fsdp.buffer "transposed" : !fsdp.buffer<tensor<8x8xf32>>
      %sum = fsdp.buffer "sum" : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "input" on "input" outs(%x : !fsdp.buffer<tensor<8x8xf32>>) {
        %0 = fsdp.input "x" sample_dim 0 : tensor<8x8xf32>
        fsdp.yield %0 : tensor<8x8xf32>
      }
      %t1 = fsdp.launch "neg" on "compute" wait(%t0) ins(%x : !fsdp.buffer<tensor<8x8xf32>>) outs(%neg : !fsdp.buffer<tensor<8x8xf32>>) {
      ^bb0(%a: tensor<8x8xf32>):
        %0 = arith.negf %a : tensor<8x8xf32>
        fsdp.yield %0 : tensor<8x8xf32>
      }
      %t2 = fsdp.launch "fused" on "compute" ins(%neg : !fsdp.buffer<tensor<8x8xf32>>) outs(%fused : !fsdp.buffer<tensor<8x8xf32>>) {
      ^bb0(%a: tensor<8x8xf32>):
        %0 = nn.fused %a : (tensor<8x8xf32>) -> tensor<8x8xf32> {
        ^bb0(%b: tensor<8x8xf32>):
          %1 = math.exp %b : tensor<8x8xf32>
          %2 = arith.mulf %1, %b : tensor<8x8xf32>
          nn.yield %2 : tensor<8x8xf32>
        }
        fsdp.yield %0 : tensor<8x8xf32>
      }
      // The operand is transposed inside: its elements are needed after others are written.
      %t3 = fsdp.launch "transposed" on "compute" ins(%fused : !fsdp.buffer<tensor<8x8xf32>>) outs(%transposed : !fsdp.buffer<tensor<8x8xf32>>) {
      ^bb0(%a: tensor<8x8xf32>):
        %0 = nn.fused %a : (tensor<8x8xf32>) -> tensor<8x8xf32> {
        ^bb0(%b: tensor<8x8xf32>):
          %1 = nn.repeat "i j -> j i" %b : tensor<8x8xf32> -> tensor<8x8xf32>
          %2 = math.exp %1 : tensor<8x8xf32>
          nn.yield %2 : tensor<8x8xf32>
        }
        fsdp.yield %0 : tensor<8x8xf32>
      }
      %t4 = fsdp.launch "sum" on "compute" ins(%transposed : !fsdp.buffer<tensor<8x8xf32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<8x8xf32>):
        %0 = nn.reduce sum "i j ->" %a : tensor<8x8xf32> -> tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
      %t5 = fsdp.launch "output" on "compute" ins(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "loss" %a
        fsdp.yield
      }
    }
    // The buffers of another segment stand where those of the first do.
    // CHECK: fsdp.segment @evaluate
    // CHECK: fsdp.buffer "e" offset 192
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      %e = fsdp.buffer "e" : !fsdp.buffer<tensor<8x8xf32>>
      %t0 = fsdp.launch "input" on "input" outs(%e : !fsdp.buffer<tensor<8x8xf32>>) {
        %0 = fsdp.input "x" sample_dim 0 : tensor<8x8xf32>
        fsdp.yield %0 : tensor<8x8xf32>
      }
    }
  }
}
