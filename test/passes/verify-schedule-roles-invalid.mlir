// Roles that do not fit together, and launches that read what is not theirs.
// RUN: fsdp-opt --fsdp-verify-schedule --split-input-file --verify-diagnostics %s

// A collective in a segment that the other role lacks, whose segments so follow one another
// otherwise.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @evaluate evaluate next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<4xf32>>
      // expected-error@below {{in segment 'evaluate', role 'first' issues 'reduce' (all_reduce sum of 4 f32, 16 bytes) on communicator 'reduce over [pipeline]', but role 'second' has no such segment}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
    // expected-error@below {{segment 'train' of role 'first' is followed by 'evaluate', but of role 'second' by 'train'}}
    fsdp.segment @train train next [@evaluate] {
    }
  }
  // expected-note@below {{the other end is here}}
  fsdp.program @second role {pipeline = 1 : i64} {
    // expected-note@below {{the other end is here}}
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

// One name, two kinds.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    // expected-error@below {{segment 'step' of role 'first' is of kind 'train', but of role 'second' of kind 'evaluate'}}
    fsdp.segment @step train next [@step] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    // expected-note@below {{the other end is here}}
    fsdp.segment @step evaluate next [@step] {
    }
  }
}

// -----

// Equal bytes, but another type.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.param @w8bf16 : tensor<8xbf16> unit "u8bf16" init <constant, 0.0>
  fsdp.storage @p8bf16 : tensor<8xbf16> replicated over [] states [] members [#fsdp.member<@w8bf16 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<4xf32>>
      // expected-error@below {{role 'first' issues 'reduce' (all_reduce sum of 4 f32, 16 bytes), but role 'second' issues 'reduce' (all_reduce sum of 8 bf16, 16 bytes)}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %p = fsdp.buffer "p" persistent holds @p8bf16 "parameter" : !fsdp.buffer<tensor<8xbf16>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<8xbf16>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<8xbf16>>) outs(%r : !fsdp.buffer<tensor<8xbf16>>) {
      ^bb0(%a: tensor<8xbf16>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<8xbf16>
        fsdp.yield %0 : tensor<8xbf16>
      }
    }
  }
}

// -----

// A sum on one rank, a maximum on the other.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<4xf32>>
      // expected-error@below {{role 'first' issues 'reduce' (all_reduce sum of 4 f32, 16 bytes), but role 'second' issues 'reduce' (all_reduce max of 4 f32, 16 bytes)}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<4xf32>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_reduce max %a over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}

// -----

// One sum of all elements on one rank, parts of it on the other.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<2xf32>>
      // expected-error@below {{role 'first' issues 'reduce' (reduce_scatter dim 0 of 4 -> 2 f32, 16 bytes), but role 'second' issues 'reduce' (reduce_scatter dim 0 of 4 -> 3 f32, 16 bytes)}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<2xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.reduce_scatter %a dim 0 over ["pipeline"] : tensor<4xf32> -> tensor<2xf32>
        fsdp.yield %0 : tensor<2xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<3xf32>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<3xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.reduce_scatter %a dim 0 over ["pipeline"] : tensor<4xf32> -> tensor<3xf32>
        fsdp.yield %0 : tensor<3xf32>
      }
    }
  }
}

// -----

// The learning rate of the next step.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    %s = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %ok = fsdp.buffer "ok" : !fsdp.buffer<tensor<i1>>
      %lr = fsdp.buffer "lr" : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "ok" on "compute" outs(%ok : !fsdp.buffer<tensor<i1>>) {
        %0 = arith.constant dense<true> : tensor<i1>
        fsdp.yield %0 : tensor<i1>
      }
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "advance" on "compute" ins(%ok : !fsdp.buffer<tensor<i1>>) step_state(%s : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a: tensor<i1>):
        fsdp.advance if %a
      }
      // expected-error@below {{'rate' uses the step's number after 'advance' has advanced it; advance last}}
      %t2 = fsdp.launch "rate" on "compute" outs(%lr : !fsdp.buffer<tensor<f32>>) step_state(%s : !fsdp.buffer<tensor<16xi64>>) {
        %0 = fsdp.learning_rate <sgd, lr = 0.1>
        fsdp.yield %0 : tensor<f32>
      }
    }
  }
}

// -----

// A view that begins one element too late: it ends in the padding.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  fsdp.param @b : tensor<3xf32> unit "u" init <constant, 0.0>
  fsdp.storage @u : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>, #fsdp.member<@b at 4>]
  fsdp.program @all role {} {
    %p = fsdp.buffer "p" persistent holds @u "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      // expected-note@below {{the other end is here}}
      %whole = fsdp.buffer "whole" holds @u "gathered" : !fsdp.buffer<tensor<8xf32>>
      %w = fsdp.subview %whole at 1 : !fsdp.buffer<tensor<8xf32>> -> !fsdp.buffer<tensor<4xf32>>
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "gather" on "compute" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%whole : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-error@below {{'use' reads bytes [4, 20) of 'whole', which are not inside one of its members}}
      %t1 = fsdp.launch "use" on "compute" ins(%w : !fsdp.buffer<tensor<4xf32>>) outs(%n : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = arith.negf %a : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}

// -----

// A view of nothing but padding.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<7xf32> unit "u" init <constant, 0.0>
  fsdp.storage @u : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    %p = fsdp.buffer "p" persistent holds @u "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      // expected-note@below {{the other end is here}}
      %whole = fsdp.buffer "whole" holds @u "gathered" : !fsdp.buffer<tensor<8xf32>>
      %w = fsdp.subview %whole at 7 : !fsdp.buffer<tensor<8xf32>> -> !fsdp.buffer<tensor<1xf32>>
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<1xf32>>
      %t0 = fsdp.launch "gather" on "compute" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%whole : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-error@below {{'use' reads bytes [28, 32) of 'whole', which are padding behind its members}}
      %t1 = fsdp.launch "use" on "compute" ins(%w : !fsdp.buffer<tensor<1xf32>>) outs(%n : !fsdp.buffer<tensor<1xf32>>) {
      ^bb0(%a: tensor<1xf32>):
        %0 = arith.negf %a : tensor<1xf32>
        fsdp.yield %0 : tensor<1xf32>
      }
    }
  }
}

// -----

// A group of collectives matches a group of the same collectives, not one of its members.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w4 : tensor<4xf32> unit "u" init <constant, 0.0>
  fsdp.storage @p4 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @evaluate evaluate next [@evaluate] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<8xf32>>
      %s = fsdp.buffer "s" : !fsdp.buffer<tensor<7xf32>>
      // expected-error@below {{as number 0 on communicator 'gather over [pipeline]' in segment 'evaluate', role 'first' issues 'both' (all_gather dim 0 and dim 0 of 4 and 4 -> 8 and 7 f32 and f32, 60 bytes), but role 'second' issues 'one' (all_gather dim 0 of 4 -> 8 f32, 32 bytes)}}
      %t1 = fsdp.launch "both" on "gather" ins(%p, %p : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%r, %s : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<7xf32>>) {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["pipeline"] : tensor<4xf32> -> tensor<8xf32>
        %1 = fsdp.all_gather %b dim 0 over ["pipeline"] : tensor<4xf32> -> tensor<7xf32>
        fsdp.yield %0, %1 : tensor<8xf32>, tensor<7xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @evaluate evaluate next [@evaluate] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<8xf32>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "one" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["pipeline"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}
