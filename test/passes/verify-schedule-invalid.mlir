// RUN: fsdp-opt --fsdp-verify-schedule --split-input-file --verify-diagnostics %s

// expected-error@below {{verifies schedules of the scheduled phase, got the global phase; run 'fsdp-schedule' first}}
module {
}

// -----

// A gather that is still in flight when its result is used.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    %p = fsdp.buffer "p" persistent : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %w = fsdp.buffer "w" : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<8xf32>>
      // expected-error@below {{'gather' writes bytes [0, 32) of 'w' while 'use' may read them; let one wait for the other}}
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
  fsdp.program @all role {} arena 192 {
    %p = fsdp.buffer "p" persistent offset 0 : !fsdp.buffer<tensor<4xf32>>
    fsdp.segment @train train next [@train] {
      %w = fsdp.buffer "w" offset 64 : !fsdp.buffer<tensor<8xf32>>
      %v = fsdp.buffer "v" offset 64 : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "n" offset 128 : !fsdp.buffer<tensor<8xf32>>
      // expected-note@below {{the other end is here}}
      %t0 = fsdp.launch "gather" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%w : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-error@below {{'w' and 'v' share bytes [64, 96) of the arena, but 'gather 2' uses 'v' and 'gather' uses 'w' while both are live}}
      %t1 = fsdp.launch "gather 2" on "gather" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%v : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<4xf32>):
        %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
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
  fsdp.program @first role {pipeline = 0 : i64} {
    %p = fsdp.buffer "p" persistent : !fsdp.buffer<tensor<4xf32>>
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
    %p = fsdp.buffer "p" persistent : !fsdp.buffer<tensor<8xf32>>
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
