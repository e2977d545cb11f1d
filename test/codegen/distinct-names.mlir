// Distinct names are distinct identifiers: enumerators of all kinds and tables have one scope, communicators names of
// their own; no identifier looks like a macro, or hides what declarations use; in comments and strings names are escaped.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s
// RUN: fsdp-translate --fsdp-to-record %s | FileCheck %s --check-prefix=RECORD

// CHECK: enum : int { kInputX, kBGather, kGather, kCompute };
// CHECK: enum : int { kOverABGather, kOverABGather2 };
// CHECK: enum : int { kAxisA, kAxisAB };
// CHECK: enum : int { kStorageB1, kStorageB1_2 };
// CHECK: enum : int { kInput, kInputX_2 };
// CHECK: constexpr ArenaSpan<float> NULL_{128, 16};
// CHECK-NEXT: constexpr ArenaSpan<float> NULL_2_{192, 16};
// CHECK-NEXT: constexpr ArenaSpan<float> ArenaSpan_2{256, 16};
// CHECK: constexpr State b_1_states[] = {
// CHECK-NEXT: {.name = "momentum", .shard = persistent::NULL_2_},
// CHECK: constexpr Parameter b_1_members[] =
// CHECK: constexpr Parameter b1_members[] =
// CHECK: enum : int { kOutputA, kOutputA_2 };
// CHECK: constexpr ArenaSpan<float> x_at_2{328, 2}; // of "x\\"
// CHECK: load_input(c, kInputX, "?\?/", kInput, arena::x);
// CHECK: load_input(c, kInputX, "*/", kInputX_2, arena::value);
// CHECK: all_gather(c, kBGather, "b.gather", kOverABGather,
// CHECK: all_gather(c, kGather, "B.gather", kOverABGather2,
// CHECK: launch(c, kCompute, "ends in \\",
// CHECK: {.name = "a_b_gather", .axes = {kAxisA}},
// CHECK-NEXT: {.name = "a_b_gather.2", .axes = {kAxisAB}},
// RECORD: over=a_b_gather kind=all_gather
// RECORD: over=a_b_gather.2 kind=all_gather

module @regression attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["a"=2, "a_b"=2]>
  fsdp.param @b : tensor<4xf32> unit "b.1" init <constant, 0.0>
  fsdp.param @c : tensor<4xf32> unit "b1" init <constant, 0.0>
  fsdp.storage @b.1 : tensor<16xf32> flat over ["a"] states ["momentum"] members [#fsdp.member<@b at 0>]
  fsdp.storage @b1 : tensor<16xf32> flat over ["a_b"] states [] members [#fsdp.member<@c at 0>]
  fsdp.program @all role {} arena 1280 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "NULL" persistent holds @b.1 "parameter" offset 128 : !fsdp.buffer<tensor<16xf32>>
    %m = fsdp.buffer "NULL" persistent holds @b.1 "momentum" offset 192 : !fsdp.buffer<tensor<16xf32>>
    %q = fsdp.buffer "ArenaSpan" persistent holds @b1 "parameter" offset 256 : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x\5C" offset 320 : !fsdp.buffer<tensor<2x4xf32>>
      %y = fsdp.buffer "*/" offset 384 : !fsdp.buffer<tensor<2x4xf32>>
      %part = fsdp.subview %x at 2 : !fsdp.buffer<tensor<2x4xf32>> -> !fsdp.buffer<tensor<2xf32>>
      %half = fsdp.buffer "half" offset 448 : !fsdp.buffer<tensor<2xf32>>
      %wb = fsdp.buffer "b" offset 512 : !fsdp.buffer<tensor<4xf32>>
      %wc = fsdp.buffer "B" offset 576 : !fsdp.buffer<tensor<4xf32>>
      %n = fsdp.buffer "n" offset 640 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "??/" on "input x" outs(%x : !fsdp.buffer<tensor<2x4xf32>>) {
        %v = fsdp.input "é" sample_dim 0 : tensor<2x4xf32>
        fsdp.yield %v : tensor<2x4xf32>
      }
      %t1 = fsdp.launch "*/" on "input x" outs(%y : !fsdp.buffer<tensor<2x4xf32>>) {
        %v = fsdp.input "x" sample_dim 0 : tensor<2x4xf32>
        fsdp.yield %v : tensor<2x4xf32>
      }
      %t2 = fsdp.launch "b.gather" on "b_gather" ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%wb : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %v = fsdp.all_gather %a dim 0 over ["a"] : tensor<16xf32> -> tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
      %t3 = fsdp.launch "B.gather" on "gather" ins(%q : !fsdp.buffer<tensor<16xf32>>) outs(%wc : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %v = fsdp.all_gather %a dim 0 over ["a_b"] : tensor<16xf32> -> tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
      %t4 = fsdp.launch "ends in \5C" on "compute" wait(%t0) ins(%part : !fsdp.buffer<tensor<2xf32>>) outs(%half : !fsdp.buffer<tensor<2xf32>>) {
      ^bb0(%u: tensor<2xf32>):
        %v = math.exp %u : tensor<2xf32>
        fsdp.yield %v : tensor<2xf32>
      }
      %t5 = fsdp.launch "A" on "compute" ins(%n : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "A" %v
      }
      %t6 = fsdp.launch "a" on "compute" ins(%n : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "a" %v
      }
    }
  }
}
