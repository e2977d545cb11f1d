// The scheduled phase: two ranks, streams, an arena; any order that the timepoints allow gives the
// same result, whatever the seed.
// RUN: split-file %s %t
// RUN: fsdp-run %t/good.mlir --steps=2 --seed=1 --outputs=%t.1.safetensors | FileCheck %s --check-prefix=GOOD
// RUN: fsdp-run %t/good.mlir --steps=2 --seed=2 | FileCheck %s --check-prefix=GOOD
// RUN: fsdp-run %t/good.mlir --steps=2 --seed=3 | FileCheck %s --check-prefix=GOOD
// RUN: not fsdp-run %t/race.mlir 2>&1 | FileCheck %s --check-prefix=RACE
// RUN: not fsdp-run %t/unready.mlir 2>&1 | FileCheck %s --check-prefix=UNREADY
// RUN: not fsdp-run %t/reused.mlir 2>&1 | FileCheck %s --check-prefix=REUSED
// RUN: not fsdp-run %t/stuck.mlir 2>&1 | FileCheck %s --check-prefix=STUCK
// RUN: not fsdp-run %t/partly.mlir 2>&1 | FileCheck %s --check-prefix=PARTLY
// RUN: not fsdp-run %t/outside.mlir 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not fsdp-run %t/another.mlir 2>&1 | FileCheck %s --check-prefix=ANOTHER
// RUN: not fsdp-run %t/nostate.mlir 2>&1 | FileCheck %s --check-prefix=NOSTATE

//--- good.mlir
// The parameter is 3, each rank's gradient 1, the rate 0.5: sum of the gathered parameter is 30, then 20.
// GOOD: step 1 total 30
// GOOD: step 2 total 20
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<10xf32> unit "w" init <constant, 3.0>
  fsdp.storage @w.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} arena 1024 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "w.parameter" persistent holds @w.flat "parameter" offset 128 : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %f = fsdp.buffer "w.gathered" offset 192 : !fsdp.buffer<tensor<10xf32>>
      %total = fsdp.buffer "total" offset 256 : !fsdp.buffer<tensor<f32>>
      %g = fsdp.buffer "gradient" offset 320 : !fsdp.buffer<tensor<10xf32>>
      %gs = fsdp.buffer "gradient.shard" offset 384 : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "gather" on "gather" ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<10xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %b = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<10xf32>
        fsdp.yield %b : tensor<10xf32>
      }
      %t1 = fsdp.launch "sum" on "compute" wait(%t0) ins(%f : !fsdp.buffer<tensor<10xf32>>) outs(%total : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<10xf32>):
        %b = nn.reduce sum "a ->" %a : tensor<10xf32> -> tensor<f32>
        fsdp.yield %b : tensor<f32>
      }
      %t2 = fsdp.launch "log" on "compute" ins(%total : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "total" %a
        fsdp.yield
      }
      %t3 = fsdp.launch "backward" on "compute" outs(%g : !fsdp.buffer<tensor<10xf32>>) {
        %c = arith.constant dense<1.0> : tensor<10xf32>
        fsdp.yield %c : tensor<10xf32>
      }
      %t4 = fsdp.launch "reduce" on "reduce" wait(%t3) ins(%g : !fsdp.buffer<tensor<10xf32>>) outs(%gs : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%a: tensor<10xf32>):
        %b = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<16xf32>
        fsdp.yield %b : tensor<16xf32>
      }
      %t5 = fsdp.launch "update" on "compute" wait(%t4) ins(%p, %gs : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%p : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
        %ok = arith.constant dense<true> : tensor<i1>
        %one = arith.constant dense<1.0> : tensor<f32>
        %lr = arith.constant dense<0.5> : tensor<f32>
        %r = fsdp.optimizer_step <sgd, lr = 0.5> @w.flat %a, %b states() lr %lr scale %one if %ok : tensor<16xf32> states 0
        fsdp.yield %r : tensor<16xf32>
      }
      %t6 = fsdp.launch "advance" on "compute" step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %ok = arith.constant dense<true> : tensor<i1>
        fsdp.advance if %ok
        fsdp.yield
      }
    }
  }
}

//--- race.mlir
// RACE: error: 'fsdp.launch' op '{{(first|second)}}' races with '{{(first|second)}}' on rank 0: both use bytes of buffer '{{[ab]}}'; let the later one wait
// RACE: note: '{{(first|second)}}' is in flight here
fsdp.program @all role {} {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" offset 0 : !fsdp.buffer<tensor<8xf32>>
    %b = fsdp.buffer "b" offset 0 : !fsdp.buffer<tensor<4xf32>>
    %t0 = fsdp.launch "first" on "one" outs(%a : !fsdp.buffer<tensor<8xf32>>) {
      %c = arith.constant dense<1.0> : tensor<8xf32>
      fsdp.yield %c : tensor<8xf32>
    }
    %t1 = fsdp.launch "second" on "two" outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      fsdp.yield %c : tensor<4xf32>
    }
  }
}

//--- unready.mlir
// UNREADY: error: 'fsdp.launch' op 'reads' on rank 0 reads byte 16 of buffer 'a', which holds no value at that point: it was not written, or was overwritten
fsdp.program @all role {} {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<8xf32>>
    %half = fsdp.subview %a at 0 : !fsdp.buffer<tensor<8xf32>> -> !fsdp.buffer<tensor<4xf32>>
    %t0 = fsdp.launch "writes half" on "compute" outs(%half : !fsdp.buffer<tensor<4xf32>>) {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      fsdp.yield %c : tensor<4xf32>
    }
    %t1 = fsdp.launch "reads" on "compute" ins(%a : !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%x: tensor<8xf32>):
      fsdp.yield
    }
  }
}

//--- reused.mlir
// Two buffers at one place; the second is written while the first is still needed.
// REUSED: error: 'fsdp.launch' op 'reads' on rank 0 reads byte 0 of buffer 'a', which holds no value at that point
fsdp.program @all role {} {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" offset 0 : !fsdp.buffer<tensor<4xf32>>
    %b = fsdp.buffer "b" offset 0 : !fsdp.buffer<tensor<4xf32>>
    %t0 = fsdp.launch "writes" on "compute" outs(%a : !fsdp.buffer<tensor<4xf32>>) {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      fsdp.yield %c : tensor<4xf32>
    }
    %t1 = fsdp.launch "overwrites" on "compute" outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      fsdp.yield %c : tensor<4xf32>
    }
    %t2 = fsdp.launch "reads" on "compute" ins(%a : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%x: tensor<4xf32>):
      fsdp.yield
    }
  }
}

//--- stuck.mlir
// One role never comes to the collective; the stream behind it waits too.
// STUCK: error: 'fsdp.launch' op 'meet': no rank can continue
// STUCK: note: rank 0, stream 'reduce': 'meet' waits in 'fsdp.all_reduce sum over ["pipeline"] : tensor<f64> -> tensor<f64>' for ranks [0, 1]
// STUCK: note: rank 0, stream 'compute': 'after' waits for 'meet'
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<f64>>
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<f64>>
    %t = fsdp.launch "writes" on "reduce" outs(%a : !fsdp.buffer<tensor<f64>>) {
      %c = arith.constant dense<1.0> : tensor<f64>
      fsdp.yield %c : tensor<f64>
    }
    %t0 = fsdp.launch "meet" on "reduce" ins(%a : !fsdp.buffer<tensor<f64>>) outs(%b : !fsdp.buffer<tensor<f64>>) {
    ^bb0(%x: tensor<f64>):
      %y = fsdp.all_reduce sum %x over ["pipeline"] : tensor<f64>
      fsdp.yield %y : tensor<f64>
    }
    %t1 = fsdp.launch "after" on "compute" wait(%t0) ins(%b : !fsdp.buffer<tensor<f64>>) {
    ^bb0(%x: tensor<f64>):
      fsdp.yield
    }
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<f64>>
    %t = fsdp.launch "writes" on "reduce" outs(%a : !fsdp.buffer<tensor<f64>>) {
      %c = arith.constant dense<1.0> : tensor<f64>
      fsdp.yield %c : tensor<f64>
    }
  }
}

//--- partly.mlir
// PARTLY: error: 'fsdp.buffer' op 'b' has no offset, but other buffers have one; plan the memory of the whole program
fsdp.program @all role {} {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" offset 0 : !fsdp.buffer<tensor<4xf32>>
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<4xf32>>
    %t0 = fsdp.launch "nothing" on "compute" {
      fsdp.yield
    }
  }
}

//--- outside.mlir
// OUTSIDE: error: 'fsdp.buffer' op 'a' ends at byte 80, expected at most 64, the size of the arena
fsdp.program @all role {} arena 64 {
  fsdp.segment @step evaluate next [@step] {
    %a = fsdp.buffer "a" offset 64 : !fsdp.buffer<tensor<4xf32>>
    %t0 = fsdp.launch "nothing" on "compute" {
      fsdp.yield
    }
  }
}

//--- nostate.mlir
// NOSTATE: error: 'fsdp.launch' op 'advance' uses the step state but does not name its buffer in 'step_state'
fsdp.program @all role {} {
  fsdp.segment @step train next [@step] {
    %t0 = fsdp.launch "advance" on "compute" {
      %ok = arith.constant dense<true> : tensor<i1>
      fsdp.advance if %ok
      fsdp.yield
    }
  }
}

//--- another.mlir
// ANOTHER: error: 'fsdp.launch' op is in 'fsdp.program', which contains only buffers, events, walks and segments
fsdp.program @all role {} {
  %t0 = fsdp.launch "outside" on "compute" {
    fsdp.yield
  }
  fsdp.segment @step train next [@step] {
    %t1 = fsdp.launch "later" on "compute" wait(%t0) {
      fsdp.yield
    }
  }
}
