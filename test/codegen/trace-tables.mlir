// What a trace shows of the plan: the stream of each launch, the bytes that are alive from one launch to another, gathers and their
// first uses. What takes an operand's place in memory goes on with its life; what stands there later has its own. A gather that
// nobody uses has no arrow; persistent buffers are alive all the time.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s

// CHECK: namespace traced {
// CHECK-NEXT: constexpr std::uint8_t streams[] = {kInput, kCompute, kGather, kCompute, kGather, kCompute};
// x and its softmax are one; y comes when they are gone; the gathered bytes; those gathered for nobody.
// CHECK-NEXT: constexpr BufferLife lives[] = {{[{][{]}}128, 0, 3}, {64, 2, 3}, {128, 3, 5}, {64, 4, 4{{[}][}]}};
// CHECK-NEXT: constexpr GatherUse uses[] = {{[{][{]}}2, 3{{[}][}]}};
// CHECK-NEXT: } // namespace traced
// CHECK-NEXT: constexpr SegmentTrace trace = {.streams = traced::streams, .lives = traced::lives,
// CHECK-NEXT: .uses = traced::uses};

// CHECK: namespace idle {
// CHECK: namespace traced {
// CHECK-NEXT: } // namespace traced
// CHECK-NEXT: constexpr SegmentTrace trace = {};

// CHECK: {.name = "idle", .run = idle::run, .trace = idle::trace},
// CHECK: .persistentBytes = 160,
module @traced attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<16xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
  fsdp.storage @u.flat : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} arena 704 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "u.flat.parameter" persistent holds @u.flat "parameter" offset 128 : !fsdp.buffer<tensor<8xf32>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" offset 192 : !fsdp.buffer<tensor<2x16xf32>>
      %s = fsdp.buffer "s" offset 192 : !fsdp.buffer<tensor<2x16xf32>>
      %w = fsdp.buffer "w" holds @u.flat "gathered" offset 448 : !fsdp.buffer<tensor<16xf32>>
      %y = fsdp.buffer "y" offset 320 : !fsdp.buffer<tensor<2x16xf32>>
      %v = fsdp.buffer "v" holds @u.flat "gathered" offset 192 : !fsdp.buffer<tensor<16xf32>>
      %loss = fsdp.subview %y at 0 : !fsdp.buffer<tensor<2x16xf32>> -> !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "x" on "input" outs(%x : !fsdp.buffer<tensor<2x16xf32>>) {
        %0 = fsdp.input "x" sample_dim 0 : tensor<2x16xf32>
        fsdp.yield %0 : tensor<2x16xf32>
      }
      %t1 = fsdp.launch "softmax" on "compute" wait(%t0) ins(%x : !fsdp.buffer<tensor<2x16xf32>>) outs(%s : !fsdp.buffer<tensor<2x16xf32>>) {
      ^bb0(%a: tensor<2x16xf32>):
        %0 = nn.softmax %a : tensor<2x16xf32>
        fsdp.yield %0 : tensor<2x16xf32>
      }
      %t2 = fsdp.launch "gather" on "gather" of "u" ins(%p : !fsdp.buffer<tensor<8xf32>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %t3 = fsdp.launch "add" on "compute" of "u" wait(%t2) ins(%s, %w : !fsdp.buffer<tensor<2x16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%y : !fsdp.buffer<tensor<2x16xf32>>) {
      ^bb0(%a: tensor<2x16xf32>, %b: tensor<16xf32>):
        %0 = nn.fused %a, %b : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x16xf32> {
        ^bb0(%c: tensor<2x16xf32>, %d: tensor<16xf32>):
          %1 = nn.repeat "d -> b d" %d : tensor<16xf32> -> tensor<2x16xf32>
          %2 = arith.addf %c, %1 : tensor<2x16xf32>
          nn.yield %2 : tensor<2x16xf32>
        }
        fsdp.yield %0 : tensor<2x16xf32>
      }
      %t4 = fsdp.launch "gather 2" on "gather" of "u" ins(%p : !fsdp.buffer<tensor<8xf32>>) outs(%v : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %t5 = fsdp.launch "output loss" on "compute" ins(%loss : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "loss" %a
        fsdp.yield
      }
    }
    fsdp.segment @idle evaluate next [@train] {
    }
  }
}
