// An all-reduce may leave its result in the bytes of its operand.
// RUN: fsdp-opt --fsdp-verify-schedule --split-input-file --verify-diagnostics %s
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<8xf32>>
      %t0 = fsdp.launch "make" on "compute" outs(%g : !fsdp.buffer<tensor<8xf32>>) {
        %0 = arith.constant dense<1.0> : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      %t1 = fsdp.launch "reduce" on "reduce" wait(%t0) ins(%g : !fsdp.buffer<tensor<8xf32>>) outs(%g : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_reduce sum %a over ["fsdp"] : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      %t2 = fsdp.launch "use" on "compute" wait(%t1) ins(%g : !fsdp.buffer<tensor<8xf32>>) outs(%n : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = arith.negf %a : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}

// -----

// What is read meanwhile is neither the operand nor the result.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<8xf32>>
      %t0 = fsdp.launch "make" on "compute" outs(%g : !fsdp.buffer<tensor<8xf32>>) {
        %0 = arith.constant dense<1.0> : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-error@below {{'reduce' writes bytes [0, 32) of 'g' while 'use' may read them; let the second wait for the first}}
      %t1 = fsdp.launch "reduce" on "reduce" wait(%t0) ins(%g : !fsdp.buffer<tensor<8xf32>>) outs(%g : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.all_reduce sum %a over ["fsdp"] : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-note@below {{the other end is here}}
      %t2 = fsdp.launch "use" on "compute" ins(%g : !fsdp.buffer<tensor<8xf32>>) outs(%n : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = arith.negf %a : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}

// -----

// A reduce-scatter may not: other ranks' parts are read after the own one is written.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<8xf32>>
      %t0 = fsdp.launch "make" on "compute" outs(%g : !fsdp.buffer<tensor<8xf32>>) {
        %0 = arith.constant dense<1.0> : tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
      // expected-error@below {{'reduce' reads and writes bytes [0, 32) of 'g', but the op cannot work in place}}
      %t1 = fsdp.launch "reduce" on "reduce" wait(%t0) ins(%g : !fsdp.buffer<tensor<8xf32>>) outs(%g : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>):
        %0 = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<8xf32>
        fsdp.yield %0 : tensor<8xf32>
      }
    }
  }
}
