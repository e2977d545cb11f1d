// Schedules over cycles of segments that are not joined: a step in several microbatches, with an evaluation
// beside it; an update that is done in the next step, and drained; two roles of which the first is ahead.
// RUN: fsdp-opt --fsdp-verify-schedule --split-input-file %s | FileCheck %s
// RUN: fsdp-opt --fsdp-verify-schedule --fsdp-verify-schedule --split-input-file %s -o /dev/null

// CHECK: fsdp.walk @train train [@first, @middle, @last] times [1, 2, 1]
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @p : tensor<16xf32> unit "p" init <constant, 0.0>
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@p at 0>]
  fsdp.program @all role {} {
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    %sum = fsdp.buffer "sum" persistent holds @s "accumulator" : !fsdp.buffer<tensor<16xf32>>
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %added = fsdp.event "added"
    %updated = fsdp.event "updated"
    fsdp.walk @train train [@first, @middle, @last] times [1, 2, 1]
    fsdp.walk @evaluation evaluate [@evaluate] times [1]
    fsdp.segment @first train async next [@middle, @last] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "gradient" on "compute" wait(%added) ins(%w : !fsdp.buffer<tensor<16xf32>>) outs(%g : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %0 = arith.negf %x : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %t1 = fsdp.launch "start" on "reduce" wait(%t0) records(%added) ins(%g : !fsdp.buffer<tensor<16xf32>>) outs(%sum : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        fsdp.yield %x : tensor<16xf32>
      }
    }
    fsdp.segment @middle train async next [@middle, @last] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "gradient" on "compute" wait(%added) ins(%w : !fsdp.buffer<tensor<16xf32>>) outs(%g : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %0 = arith.negf %x : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %t1 = fsdp.launch "add" on "reduce" wait(%t0) records(%added) ins(%g, %sum : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%sum : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>):
        %0 = arith.addf %x, %y : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
    }
    fsdp.segment @last train async next [@first, @evaluate] {
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "gradient" on "compute" wait(%added) ins(%w : !fsdp.buffer<tensor<16xf32>>) outs(%g : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %0 = arith.negf %x : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %t1 = fsdp.launch "add" on "reduce" wait(%t0) records(%added) ins(%g, %sum : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%sum : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>):
        %0 = arith.addf %x, %y : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %update = fsdp.launch "update" on "compute" wait(%t1) records(%updated) ins(%w, %sum : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>):
        %l = arith.constant dense<0.1> : tensor<f32>
        %i = arith.constant dense<true> : tensor<i1>
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %x, %y states() lr %l scale %l if %i : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      %advance = fsdp.launch "advance" on "compute" step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %i = arith.constant dense<true> : tensor<i1>
        fsdp.advance if %i
      }
    }
    fsdp.segment @evaluate evaluate next [@evaluate, @first] {
      %n = fsdp.buffer "n" : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "evaluate" on "evaluate" wait(%updated) ins(%w : !fsdp.buffer<tensor<16xf32>>) outs(%n : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %0 = arith.negf %x : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
    }
  }
}

// -----

// CHECK: fsdp.segment @drain
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @p : tensor<16xf32> unit "p" init <constant, 0.0>
  fsdp.storage @s : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@p at 0>]
  fsdp.program @all role {} {
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<16xf32>>
    %sum = fsdp.buffer "sum" persistent holds @s "accumulator" : !fsdp.buffer<tensor<16xf32>>
    %ok = fsdp.buffer "ok" persistent : !fsdp.buffer<tensor<i1>>
    %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    %reduced = fsdp.event "reduced"
    fsdp.walk @begin train [@start] times [1]
    fsdp.segment @start train async next [@start, @step, @drain] {
      %start = fsdp.launch "start" on "compute" outs(%sum, %ok : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<i1>>) {
        %0 = arith.constant dense<0.0> : tensor<16xf32>
        %i = arith.constant dense<false> : tensor<i1>
        fsdp.yield %0, %i : tensor<16xf32>, tensor<i1>
      }
    }
    fsdp.segment @step train async next [@step, @drain] {
      %update = fsdp.launch "update" on "compute" wait(%reduced) ins(%w, %sum, %ok : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>, %i: tensor<i1>):
        %l = arith.constant dense<0.1> : tensor<f32>
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %x, %y states() lr %l scale %l if %i deferred : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      %g = fsdp.buffer "g" : !fsdp.buffer<tensor<16xf32>>
      %t0 = fsdp.launch "gradient" on "compute" wait(%reduced) ins(%w : !fsdp.buffer<tensor<16xf32>>) outs(%g : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %0 = arith.negf %x : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %t1 = fsdp.launch "reduce" on "reduce" wait(%t0) records(%reduced) ins(%g : !fsdp.buffer<tensor<16xf32>>) outs(%sum : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%x: tensor<16xf32>):
        %0 = fsdp.all_reduce sum %x over ["fsdp"] : tensor<16xf32>
        fsdp.yield %0 : tensor<16xf32>
      }
      %check = fsdp.launch "check" on "compute" outs(%ok : !fsdp.buffer<tensor<i1>>) {
        %i = arith.constant dense<true> : tensor<i1>
        fsdp.yield %i : tensor<i1>
      }
      %advance = fsdp.launch "advance" on "compute" step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %i = arith.constant dense<true> : tensor<i1>
        fsdp.advance if %i
      }
    }
    fsdp.segment @drain train drain next [@step, @drain] {
      %update = fsdp.launch "update" on "compute" wait(%reduced) ins(%w, %sum, %ok : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<i1>>) outs(%w : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%x: tensor<16xf32>, %y: tensor<16xf32>, %i: tensor<i1>):
        %l = arith.constant dense<0.1> : tensor<f32>
        %n = fsdp.optimizer_step <sgd, lr = 0.1> @s %x, %y states() lr %l scale %l if %i deferred : tensor<16xf32> states 0
        fsdp.yield %n : tensor<16xf32>
      }
      %off = fsdp.launch "off" on "compute" outs(%ok : !fsdp.buffer<tensor<i1>>) {
        %i = arith.constant dense<false> : tensor<i1>
        fsdp.yield %i : tensor<i1>
      }
    }
  }
}

// -----

// CHECK: fsdp.program @second
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @p : tensor<4xf32> unit "p" init <constant, 0.0>
  fsdp.storage @s : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@p at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<4xf32>>
    %sent = fsdp.event "sent"
    fsdp.walk @train train [@fill, @steady, @drain] times [1, 3, 1]
    fsdp.segment @fill train async next [@steady] {
      %a = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %b = fsdp.buffer "y" : !fsdp.buffer<tensor<4xf32>>
      %make = fsdp.launch "make" on "compute" wait(%sent) ins(%w : !fsdp.buffer<tensor<4xf32>>) outs(%a : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%v: tensor<4xf32>):
        %0 = arith.negf %v : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %sendt = fsdp.launch "send" on "link" wait(%make) records(%sent) ins(%a : !fsdp.buffer<tensor<4xf32>>) outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%x: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %x over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
    fsdp.segment @steady train async next [@steady, @drain] {
      %a = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %b = fsdp.buffer "y" : !fsdp.buffer<tensor<4xf32>>
      %make = fsdp.launch "make" on "compute" wait(%sent) ins(%w : !fsdp.buffer<tensor<4xf32>>) outs(%a : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%v: tensor<4xf32>):
        %0 = arith.negf %v : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %sendt = fsdp.launch "send" on "link" wait(%make) records(%sent) ins(%a : !fsdp.buffer<tensor<4xf32>>) outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%x: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %x over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
    fsdp.segment @drain train next [@fill] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %w = fsdp.buffer "w" persistent holds @s "parameter" : !fsdp.buffer<tensor<4xf32>>
    %sent = fsdp.event "sent"
    fsdp.walk @train train [@fill, @steady, @drain] times [1, 3, 1]
    fsdp.segment @fill train async next [@steady] {
    }
    fsdp.segment @steady train async next [@steady, @drain] {
      %a = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %b = fsdp.buffer "y" : !fsdp.buffer<tensor<4xf32>>
      %receivet = fsdp.launch "receive" on "link" wait(%sent) ins(%w : !fsdp.buffer<tensor<4xf32>>) outs(%a : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%x: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %x over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %use = fsdp.launch "use" on "compute" wait(%receivet) records(%sent) ins(%a : !fsdp.buffer<tensor<4xf32>>) outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%v: tensor<4xf32>):
        %0 = arith.negf %v : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
    fsdp.segment @drain train next [@fill] {
      %a = fsdp.buffer "x" : !fsdp.buffer<tensor<4xf32>>
      %b = fsdp.buffer "y" : !fsdp.buffer<tensor<4xf32>>
      %receivet = fsdp.launch "receive" on "link" wait(%sent) ins(%w : !fsdp.buffer<tensor<4xf32>>) outs(%a : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%x: tensor<4xf32>):
        %0 = fsdp.all_reduce sum %x over ["pipeline"] : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
      %use = fsdp.launch "use" on "compute" wait(%receivet) records(%sent) ins(%a : !fsdp.buffer<tensor<4xf32>>) outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%v: tensor<4xf32>):
        %0 = arith.negf %v : tensor<4xf32>
        fsdp.yield %0 : tensor<4xf32>
      }
    }
  }
}
