// A right schedule of two roles and two segments: the roles meet over the axis that tells them
// apart, and each gathers by itself over the other. Nothing is reported, nothing changes.
// RUN: fsdp-opt --fsdp-verify-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-plan-memory --fsdp-verify-schedule %s

// CHECK: fsdp.program @first
// CHECK: fsdp.program @second
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2, "fsdp"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.param @w8f32 : tensor<8xf32> unit "u8f32" init <constant, 0.0>
  fsdp.storage @p8f32 : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w8f32 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@evaluate] {
      %w = fsdp.buffer "w" : !fsdp.buffer<tensor<8xf32>>
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<8xf32>>
      %t0 = fsdp.launch "gather" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%w : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      %t1 = fsdp.launch "reduce" on "reduce" wait(%t0) ins(%w : !fsdp.buffer<tensor<8xf32>>) outs(%r : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
    fsdp.segment @evaluate evaluate next [@train] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %p = fsdp.buffer "p" persistent holds @p8f32 "parameter" : !fsdp.buffer<tensor<8xf32>>
    fsdp.segment @train train next [@evaluate] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<8xf32>>
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<8xf32>>) outs(%r : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
    fsdp.segment @evaluate evaluate next [@train] {
    }
  }
}
