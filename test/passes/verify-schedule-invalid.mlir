// RUN: fsdp-opt --fsdp-verify-schedule --split-input-file --verify-diagnostics %s

// expected-error@below {{verifies schedules of the scheduled phase, got the global phase; run 'fsdp-schedule' first}}
module {
}

// -----

// A gather that is still in flight when its result is used.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.program @all role {} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %w = fsdp.buffer "w" : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<8xf32>>
      // expected-error@below {{'gather' writes bytes [0, 32) of 'w' while 'use' may read them; let the second wait for the first}}
      %t0 = fsdp.launch "gather" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%w : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "use" on "compute" ins(%w : !fsdp.buffer<tensor<8xf32>>) outs(%n : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = arith.negf %a : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}

// -----

// The next unit is gathered over one that is in use.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.program @all role {} arena 192 {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" offset 0 : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %w = fsdp.buffer "w" offset 64 : !fsdp.buffer<tensor<8xf32>>
      %v = fsdp.buffer "v" offset 64 : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "n" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %t0 = fsdp.launch "gather" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%w : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "gather 2" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%v : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-error@below {{'use' reads bytes [0, 32) of 'w', but 'gather 2' has overwritten them with 'v'; move one buffer, or read earlier}}
      %t2 = fsdp.launch "use" on "compute" wait(%t0) ins(%w : !fsdp.buffer<tensor<8xf32>>) outs(%n : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = arith.negf %a : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}

// -----

// Two roles that would wait for one another for ever.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w4f32 : tensor<4xf32> unit "u4f32" init <constant, 0.0>
  fsdp.storage @p4f32 : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w4f32 at 0>]
  fsdp.param @w8f32 : tensor<8xf32> unit "u8f32" init <constant, 0.0>
  fsdp.storage @p8f32 : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w8f32 at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent holds @p4f32 "parameter" : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<4xf32>>
      // expected-error@below {{as number 0 on communicator 'reduce over [pipeline]' in segment 'train', role 'first' issues 'reduce' (all_reduce sum of 4 f32, 16 bytes), but role 'second' issues 'reduce' (all_reduce sum of 8 f32, 32 bytes)}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%r : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %p = fsdp.buffer "p" persistent holds @p8f32 "parameter" : !fsdp.buffer<tensor<8xf32>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<8xf32>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "reduce" on "reduce" ins(%p : !fsdp.buffer<tensor<8xf32>>) outs(%r : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_reduce sum %a over ["pipeline"] : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}

// -----

// Two outputs of one name.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" : !fsdp.buffer<tensor<f32>>
      %t = fsdp.launch "make" on "c" outs(%a : !fsdp.buffer<tensor<f32>>) {
        %c = arith.constant dense<1.0> : tensor<f32>
        fsdp.yield %c : tensor<f32>
      }
      %t0 = fsdp.launch "first" on "c" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        // expected-note@below {{the first output is here}}
        fsdp.output "accuracy" %v
      }
      %t1 = fsdp.launch "second" on "c" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        // expected-error@below {{'accuracy' appears twice; give each its own name}}
        fsdp.output "accuracy" %v
      }
    }
  }
}

// -----

// A key of the log.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" : !fsdp.buffer<tensor<f32>>
      %t = fsdp.launch "make" on "c" outs(%a : !fsdp.buffer<tensor<f32>>) {
        %c = arith.constant dense<1.0> : tensor<f32>
        fsdp.yield %c : tensor<f32>
      }
      %t0 = fsdp.launch "first" on "c" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        // expected-error@below {{is called 'step', a key that is reserved in the training log; choose another name}}
        fsdp.output "step" %v
      }
    }
  }
}

// -----

// Inputs with batches of different sizes.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %tx = fsdp.launch "input x" on "i" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        // expected-note@below {{the first input is here}}
        %v = fsdp.input "x" sample_dim 0 : tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<8xf32>>
      %ty = fsdp.launch "input y" on "i" outs(%y : !fsdp.buffer<tensor<8xf32>>) {
        // expected-error@below {{'y' has a batch of 8 samples, expected 4 as in 'x'}}
        %v = fsdp.input "y" sample_dim 0 : tensor<8xf32>
        fsdp.yield %v : tensor<8xf32>
      }
    }
  }
}

// -----

// A launch that uses the step state without naming it.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<f32>>
      // expected-error@below {{holds 'fsdp.learning_rate', which uses the step state; name its buffer in 'step_state'}}
      %t = fsdp.launch "rate" on "c" outs(%r : !fsdp.buffer<tensor<f32>>) {
        %v = fsdp.learning_rate <sgd, lr = 0.1>
        fsdp.yield %v : tensor<f32>
      }
    }
  }
}

// -----

// An update without an advance.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @w : tensor<16xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<f32>>
      %k = fsdp.buffer "k" : !fsdp.buffer<tensor<i1>>
      %t = fsdp.launch "make" on "c" outs(%g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) {
        %a = arith.constant dense<1.0> : tensor<16xf32>
        %b = arith.constant dense<1.0> : tensor<f32>
        %c = arith.constant dense<true> : tensor<i1>
        fsdp.yield %a, %b, %c : tensor<16xf32>, tensor<f32>, tensor<i1>
      }
      // expected-error@below {{'update 1' updates storage 's' again, but nothing advances the step between; end the step with 'fsdp.advance'}}
      %u1 = fsdp.launch "update 1" on "c" ins(%w, %g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>):
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
    }
  }
}

// -----

// Two updates of a storage in a step.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @w : tensor<16xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<f32>>
      %k = fsdp.buffer "k" : !fsdp.buffer<tensor<i1>>
      %t = fsdp.launch "make" on "c" outs(%g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) {
        %a = arith.constant dense<1.0> : tensor<16xf32>
        %b = arith.constant dense<1.0> : tensor<f32>
        %c = arith.constant dense<true> : tensor<i1>
        fsdp.yield %a, %b, %c : tensor<16xf32>, tensor<f32>, tensor<i1>
      }
      // expected-note@below {{the other end is here}}
      %u1 = fsdp.launch "update 1" on "c" ins(%w, %g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>):
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      // expected-error@below {{'update 2' updates storage 's' in the step in which 'update 1' has updated it; update it once before each advance}}
      %u2 = fsdp.launch "update 2" on "c" ins(%w, %g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>):
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      %v = fsdp.launch "advance" on "c" ins(%k : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%i: tensor<i1>):
        fsdp.advance if %i
      }
    }
  }
}

// -----

// Updates of two storages on streams of their own. Where they are skipped, both note the first bad gradient.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @v : tensor<16xf32> unit "v" init <constant, 0.0>
  fsdp.param @w : tensor<16xf32> unit "w" init <constant, 0.0>
  fsdp.storage @r : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@v at 0>]
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %v = fsdp.buffer "v" persistent holds @r "parameter" : !fsdp.buffer<tensor<16xf32>>
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<f32>>
      %k = fsdp.buffer "k" : !fsdp.buffer<tensor<i1>>
      %t = fsdp.launch "make" on "c" outs(%g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) {
        %a = arith.constant dense<1.0> : tensor<16xf32>
        %b = arith.constant dense<1.0> : tensor<f32>
        %c = arith.constant dense<true> : tensor<i1>
        fsdp.yield %a, %b, %c : tensor<16xf32>, tensor<f32>, tensor<i1>
      }
      // expected-error@below {{'update v' writes bytes [104, 108) of 'step_state' while 'update w' may read them; let the second wait for the first}}
      // expected-error@below {{'update v' writes bytes [104, 108) of 'step_state' while 'update w' may write them; let the second wait for the first}}
      %u1 = fsdp.launch "update v" on "c" ins(%v, %g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%v : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>):
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @r %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      // expected-note@below {{the other end is here}}
      %u2 = fsdp.launch "update w" on "u" wait(%t) ins(%w, %g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>):
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      %e = fsdp.launch "advance" on "c" wait(%u2) ins(%k : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%i: tensor<i1>):
        fsdp.advance if %i
      }
    }
  }
}

// -----

// Two updates in a launch.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @w : tensor<16xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<f32>>
      %k = fsdp.buffer "k" : !fsdp.buffer<tensor<i1>>
      %t = fsdp.launch "make" on "c" outs(%g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) {
        %a = arith.constant dense<1.0> : tensor<16xf32>
        %b = arith.constant dense<1.0> : tensor<f32>
        %c = arith.constant dense<true> : tensor<i1>
        fsdp.yield %a, %b, %c : tensor<16xf32>, tensor<f32>, tensor<i1>
      }
      %u1 = fsdp.launch "update 1" on "c" ins(%w, %g, %r, %k : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>):
        // expected-note@below {{the first one is here}}
        %m = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        // expected-error@below {{shares a launch with 'fsdp.optimizer_step'; use a separate launch for each update and for the advance}}
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %m, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      %v = fsdp.launch "advance" on "c" ins(%k : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%i: tensor<i1>):
        fsdp.advance if %i
      }
    }
  }
}

// -----

// Updates of two storages by different rates.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @w : tensor<16xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.param @v : tensor<16xf32> unit "v" init <constant, 0.0>
  fsdp.storage @t : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@v at 0>]
  fsdp.program @all role {} {
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    %v = fsdp.buffer "v" persistent holds @t "parameter" : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %r = fsdp.buffer "r" : !fsdp.buffer<tensor<f32>>
      %k = fsdp.buffer "k" : !fsdp.buffer<tensor<i1>>
      %q = fsdp.buffer "q" : !fsdp.buffer<tensor<f32>>
      %t = fsdp.launch "make" on "c" outs(%g, %r, %k, %q : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>, !fsdp.buffer<tensor<f32>>) {
        %a = arith.constant dense<1.0> : tensor<16xf32>
        %b = arith.constant dense<1.0> : tensor<f32>
        %c = arith.constant dense<true> : tensor<i1>
        fsdp.yield %a, %b, %c, %b : tensor<16xf32>, tensor<f32>, tensor<i1>, tensor<f32>
      }
      %u1 = fsdp.launch "updates" on "c" ins(%w, %v, %g, %r, %k, %q : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>, !fsdp.buffer<tensor<f32>>) outs(%w, %v : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%p: tensor<16xf32>, %o: tensor<16xf32>, %d: tensor<16xf32>, %l: tensor<f32>, %i: tensor<i1>, %other: tensor<f32>):
        // expected-note@below {{the first one is here}}
        %m = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %d states() lr %l scale %l if %i : tensor<16xf32> states 0
        // expected-error@below {{shares a launch with 'fsdp.optimizer_step'; use a separate launch for each update and for the advance}}
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @t %o, %d states() lr %other scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %m, %n : tensor<16xf32>, tensor<16xf32>
      }
      %e = fsdp.launch "advance" on "c" ins(%k : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%i: tensor<i1>):
        fsdp.advance if %i
      }
    }
  }
}
