// Equal ops are one kernel of a GPU only where it may load alike: the place of a buffer says how wide its loads are.
// RUN: fsdp-translate --fsdp-to-cuda %s | FileCheck %s

// The second launch begins at no multiple of 16 bytes; the third one is at another aligned place.
// CHECK:     __global__ void negf_kernel(
// CHECK:       load<4>(
// CHECK:     __global__ void part_negf_kernel(
// CHECK-NOT:   load<
// CHECK-NOT: __global__ void
// CHECK:     "whole.negf", reads(arena::a), writes(arena::h), fused::negf);
// CHECK:     "part.negf", reads(arena::b_at_1), writes(arena::h), fused::part_negf);
// CHECK:     "other.negf", reads(arena::c), writes(arena::h), fused::negf);
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 1024 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<32xf32>>
      %b = fsdp.buffer "b" offset 256 : !fsdp.buffer<tensor<36xf32>>
      %c = fsdp.buffer "c" offset 512 : !fsdp.buffer<tensor<32xf32>>
      %h = fsdp.buffer "h" offset 768 : !fsdp.buffer<tensor<32xf32>>
      %p = fsdp.subview %b at 1 : !fsdp.buffer<tensor<36xf32>> -> !fsdp.buffer<tensor<32xf32>>
      %t0 = fsdp.launch "whole.negf" on "compute" ins(%a : !fsdp.buffer<tensor<32xf32>>) outs(%h : !fsdp.buffer<tensor<32xf32>>) {
      ^bb0(%x: tensor<32xf32>):
        %y = arith.negf %x : tensor<32xf32>
        fsdp.yield %y : tensor<32xf32>
      }
      %t1 = fsdp.launch "part.negf" on "compute" ins(%p : !fsdp.buffer<tensor<32xf32>>) outs(%h : !fsdp.buffer<tensor<32xf32>>) {
      ^bb0(%x: tensor<32xf32>):
        %y = arith.negf %x : tensor<32xf32>
        fsdp.yield %y : tensor<32xf32>
      }
      %t2 = fsdp.launch "other.negf" on "compute" ins(%c : !fsdp.buffer<tensor<32xf32>>) outs(%h : !fsdp.buffer<tensor<32xf32>>) {
      ^bb0(%x: tensor<32xf32>):
        %y = arith.negf %x : tensor<32xf32>
        fsdp.yield %y : tensor<32xf32>
      }
    }
  }
}
