// Sends without their receives, and sends that wait for one another. What is right is in test/interpreter/transfers.mlir.
// RUN: fsdp-opt --fsdp-verify-schedule --split-input-file --verify-diagnostics %s

// Nobody receives.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      // expected-error@below {{as number 0 on communicator 'transfers by 1 over [pipeline] from first to second' in segment 'train', role 'first' issues 'give' (send of 4 f32, 16 bytes), but role 'second' issues nothing}}
      %t1 = fsdp.launch "give" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<4xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    // expected-note@below {{the other end is here}}
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

// Nobody sends: the third role receives twice what the second one sends once.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=3]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    // expected-note@below {{the other end is here}}
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %t1 = fsdp.launch "give" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<4xf32>
      }
    }
  }
  fsdp.program @third role {pipeline = 2 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "take" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      // expected-error@below {{as number 1 on communicator 'transfers by 1 over [pipeline] from second to third' in segment 'train', role 'third' issues 'again' (receive of 4 f32, 16 bytes), but role 'second' issues nothing}}
      %t1 = fsdp.launch "again" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}

// -----

// Another type than what is sent.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      // expected-error@below {{on communicator 'transfers by 1 over [pipeline] from first to second' in segment 'train', role 'first' issues 'give' (send of 4 f32, 16 bytes), but role 'second' issues 'take' (receive of 8 bf16, 16 bytes)}}
      %t1 = fsdp.launch "give" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<4xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<8xbf16>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "take" on "line" outs(%x : !fsdp.buffer<tensor<8xbf16>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<8xbf16>
        fsdp.yield %0 : tensor<8xbf16>
      }
    }
  }
}

// -----

// As many elements of the same type in another shape, which the interpreter refuses too (test/interpreter/transfers.mlir).
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<2x3xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<2x3xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<2x3xf32>
        fsdp.yield %0 : tensor<2x3xf32>
      }
      // expected-error@below {{on communicator 'transfers by 1 over [pipeline] from first to second' in segment 'train', role 'first' issues 'give' (send of 2x3 f32, 24 bytes), but role 'second' issues 'take' (receive of 3x2 f32, 24 bytes)}}
      %t1 = fsdp.launch "give" on "line" ins(%x : !fsdp.buffer<tensor<2x3xf32>>) {
      ^bb0(%0: tensor<2x3xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<2x3xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<3x2xf32>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "take" on "line" outs(%x : !fsdp.buffer<tensor<3x2xf32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<3x2xf32>
        fsdp.yield %0 : tensor<3x2xf32>
      }
    }
  }
}

// -----

// Of two values, the sizes are in another order.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<2xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x, %y : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<2xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        %1 = arith.constant dense<7.0> : tensor<2xf32>
        fsdp.yield %0, %1 : tensor<4xf32>, tensor<2xf32>
      }
      // expected-error@below {{role 'first' issues 'give four' (send of 4 f32, 16 bytes), but role 'second' issues 'take two' (receive of 2 f32, 8 bytes)}}
      %t1 = fsdp.launch "give four" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<4xf32>
      }
      %t2 = fsdp.launch "give two" on "line" ins(%y : !fsdp.buffer<tensor<2xf32>>) {
      ^bb0(%0: tensor<2xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<2xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<2xf32>>
      // expected-note@below {{the other end is here}}
      %t1 = fsdp.launch "take two" on "line" outs(%y : !fsdp.buffer<tensor<2xf32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<2xf32>
        fsdp.yield %0 : tensor<2xf32>
      }
      %t2 = fsdp.launch "take four" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}

// -----

// Both send before they receive, on one stream.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      // expected-error@below {{'give' of role 'first' (from 'first' to 'second') waits for 'take' of role 'first' (from 'second' to 'first'), which waits for 'give' of role 'first' (from 'first' to 'second'): none of them ever starts}}
      %t1 = fsdp.launch "give" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<4xf32>
      }
      // expected-note@below {{the other end is here}}
      %t2 = fsdp.launch "take" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset 1 over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %t1 = fsdp.launch "give back" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset -1 over ["pipeline"] : tensor<4xf32>
      }
      %t2 = fsdp.launch "take" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}

// -----

// One program for all ranks: in the middle, each rank waits on the stream for both its neighbours.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["context"=3]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = arith.constant dense<7.0> : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      // expected-error@below {{'up' of role 'all[context=0]' (from 'all[context=0]' to 'all[context=1]') waits for 'from behind' of role 'all[context=0]' (from 'all[context=1]' to 'all[context=0]'), which waits for}}
      %t1 = fsdp.launch "up" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset 1 over ["context"] : tensor<4xf32>
      }
      %t2 = fsdp.launch "down" on "line" ins(%x : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%0: tensor<4xf32>):
        fsdp.send %0 offset -1 over ["context"] : tensor<4xf32>
      }
      %t3 = fsdp.launch "from before" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset -1 over ["context"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      // expected-note@below {{the other end is here}}
      %t4 = fsdp.launch "from behind" on "line" outs(%x : !fsdp.buffer<tensor<4xf32>>) {
        %0 = fsdp.receive offset 1 over ["context"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}
