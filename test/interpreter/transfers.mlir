// Three roles, a pipeline: values go up, and what becomes of them comes down.
// DEFINE: %{seeds} = %{python} %S/Inputs/seeds.py
// RUN: split-file %s %t
// RUN: fsdp-run %t/pipeline.mlir --steps=2 | FileCheck %s
// RUN: fsdp-opt %t/pipeline.mlir --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule -o %t/scheduled.mlir
// RUN: %{seeds} all 25 fsdp-run %t/scheduled.mlir --steps=2 | FileCheck %s
// CHECK: step 1 down 48{{$}}
// CHECK: step 1 up 6{{$}}
// CHECK: step 1 zeros 0{{$}}
// CHECK: step 2 down 48{{$}}

// RUN: not fsdp-run %t/lacking.mlir 2>&1 | FileCheck %s --check-prefix=LACKING
// RUN: not fsdp-run %t/unreceived.mlir 2>&1 | FileCheck %s --check-prefix=UNRECEIVED
// RUN: not fsdp-run %t/type.mlir 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not fsdp-run %t/circle.mlir 2>&1 | FileCheck %s --check-prefix=CIRCLE

// A send and its receive run together: what is sent is not overwritten meanwhile, nor read before it is there.
// RUN: sed 's/ wait(%%sent)//' %t/launches.mlir | %{seeds} some 25 fsdp-run - | FileCheck %s --check-prefix=SENT
// SENT: error: 'fsdp.launch' op '{{send|clear}}' races with '{{send|clear}}' on rank 0: both use bytes of buffer 'x'; let the later one wait
// RUN: sed 's/ wait(%%received)//' %t/launches.mlir | %{seeds} some 25 fsdp-run - | FileCheck %s --check-prefix=RECEIVED
// RECEIVED: error: 'fsdp.launch' op 'log' {{.*}}buffer 'y'
// RUN: %{seeds} all 25 fsdp-run %t/launches.mlir | FileCheck %s --check-prefix=LAUNCHES
// LAUNCHES: step 1 y 7{{$}}

// Both ranks send first, on one stream: neither send completes before the other rank receives.
// RUN: %{seeds} some 4 fsdp-run %t/crossing.mlir | FileCheck %s --check-prefix=CROSSING
// CROSSING: refused with 4 of 4 seeds
// CROSSING: error: 'fsdp.launch' op 'send': no rank can continue
// CROSSING: note: rank 0, stream 'line': 'send' waits in 'fsdp.send offset 1 over ["pipeline"] : tensor<f32>' for rank 1, which must receive it
// CROSSING: note: rank 1, stream 'line': 'send' waits in 'fsdp.send offset -1 over ["pipeline"] : tensor<f32>' for rank 0, which must receive it

// The types differ, found when both are there.
// RUN: sed '/"receive"/,/yield/s/tensor<f32>/tensor<2xf32>/g;s/%%y = fsdp.buffer "y" : !fsdp.buffer<tensor<f32>>/%%y = fsdp.buffer "y" : !fsdp.buffer<tensor<2xf32>>/;/"log"/,$d' %t/launches.mlir > %t/types.mlir
// RUN: echo '}}}' >> %t/types.mlir
// RUN: %{seeds} some 2 fsdp-run %t/types.mlir | FileCheck %s --check-prefix=TYPES
// TYPES: error: rank 1 receives 'tensor<2xf32>', but rank 0 sends 'tensor<f32>'
// TYPES: note: it is sent here

// A value that is received ahead of time delays nothing that is sent: the second rank waits for the second value before it sends what the first one
// needs to send that value. With the receives and the sends of a rank on one stream neither continues.
// RUN: fsdp-opt --fsdp-verify-schedule %t/ahead.mlir | %{seeds} all 25 fsdp-run - | FileCheck %s --check-prefix=AHEAD
// AHEAD: step 1 last 28{{$}}
// RUN: sed 's/"receive_up"/"send_down"/' %t/ahead.mlir > %t/one-stream.mlir
// RUN: not fsdp-opt --fsdp-verify-schedule %t/one-stream.mlir 2>&1 | FileCheck %s --check-prefix=ONESTREAM
// ONESTREAM: error: {{.*}}none of them ever starts
// RUN: %{seeds} some 4 fsdp-run %t/one-stream.mlir | FileCheck %s --check-prefix=ONEHANGS
// ONEHANGS: refused with 4 of 4 seeds
// ONEHANGS: error: {{.*}}: no rank can continue

// In a ring of two a rank sends both ways to the other one, in an order of its own. Without the ring both go down.
// RUN: fsdp-opt --fsdp-verify-schedule %t/both.mlir | %{seeds} all 25 fsdp-run - | FileCheck %s --check-prefix=BOTH
// BOTH: step 1 down 3{{$}}
// BOTH: step 1 up 4{{$}}
// RUN: sed 's/offset 1 ring/offset -1/;s/offset -1 ring/offset 1/' %t/both.mlir > %t/crossed.mlir
// RUN: not fsdp-opt --fsdp-verify-schedule %t/crossed.mlir 2>&1 | FileCheck %s --check-prefix=CROSSED
// CROSSED: error: {{.*}}on communicator 'transfers by -1 over [pipeline] from second to first'

//--- pipeline.mlir
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=3, "context"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<3.0> : tensor<2xf32>
      fsdp.send %x offset 1 over ["pipeline"] : tensor<2xf32>
      %back = fsdp.receive offset 1 over ["pipeline"] : tensor<2xf32>
      %sum = nn.reduce sum "i ->" %back : tensor<2xf32> -> tensor<f32>
      fsdp.output "down" %sum
      // Of this role's ranks, the one at 0 has nobody before it.
      fsdp.send %x offset 1 over ["context"] : tensor<2xf32>
      %zeros = fsdp.receive offset -1 over ["context"] : tensor<2xf32>
      %all = fsdp.broadcast %zeros from 0 over ["context"] : tensor<2xf32>
      %zero = nn.reduce sum "i ->" %all : tensor<2xf32> -> tensor<f32>
      fsdp.output "zeros" %zero
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.receive offset -1 over ["pipeline"] : tensor<2xf32>
      %y = arith.addf %x, %x : tensor<2xf32>
      fsdp.send %y offset 1 over ["pipeline"] : tensor<2xf32>
      %sum = nn.reduce sum "i ->" %x : tensor<2xf32> -> tensor<f32>
      fsdp.output "up" %sum
      %back = fsdp.receive offset 1 over ["pipeline"] : tensor<2xf32>
      %twice = arith.addf %back, %back : tensor<2xf32>
      fsdp.send %twice offset -1 over ["pipeline"] : tensor<2xf32>
    }
  }
  fsdp.program @third role {pipeline = 2 : i64} {
    fsdp.segment @train train next [@train] {
      %y = fsdp.receive offset -1 over ["pipeline"] : tensor<2xf32>
      %z = arith.addf %y, %y : tensor<2xf32>
      fsdp.send %z offset -1 over ["pipeline"] : tensor<2xf32>
    }
  }
}

//--- lacking.mlir
// LACKING: error: deadlock: no rank can continue: rank 1 waits for a collective that other ranks do not join
// LACKING: note: rank 0 is done
// LACKING: note: rank 1 waits at 'fsdp.receive offset -1 over ["pipeline"] : tensor<f64>', for rank 0, which must send it
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
    %b = fsdp.receive offset -1 over ["pipeline"] : tensor<f64>
  }
}

//--- unreceived.mlir
// UNRECEIVED: error: rank 1 does not receive the value that rank 0 sends here: it ends the step without a matching 'fsdp.receive'
// UNRECEIVED-NEXT: fsdp.send
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    fsdp.send %a offset 1 over ["pipeline"] : tensor<f64>
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
  }
}

//--- type.mlir
// TYPE: error: rank 1 receives 'tensor<3xf32>', but rank 0 sends 'tensor<4xf32>'
// TYPE: note: it is sent here
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<4xf32>
    fsdp.send %a offset 1 over ["pipeline"] : tensor<4xf32>
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
    %b = fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
  }
}

//--- circle.mlir
// Each rank receives before it sends.
// CIRCLE: error: deadlock: no rank can continue
// CIRCLE: note: rank 0 waits at 'fsdp.receive offset 1 over ["pipeline"] : tensor<f64>', for rank 1, which must send it
// CIRCLE: note: rank 1 waits at 'fsdp.receive offset -1 over ["pipeline"] : tensor<f64>', for rank 0, which must send it
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = fsdp.receive offset 1 over ["pipeline"] : tensor<f64>
    fsdp.send %a offset 1 over ["pipeline"] : tensor<f64>
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
    %a = fsdp.receive offset -1 over ["pipeline"] : tensor<f64>
    fsdp.send %a offset -1 over ["pipeline"] : tensor<f64>
  }
}

//--- launches.mlir
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<f32>>
      %set = fsdp.launch "set" on "compute" outs(%x : !fsdp.buffer<tensor<f32>>) {
        %0 = arith.constant dense<7.0> : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
      %sent = fsdp.launch "send" on "line" wait(%set) ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%0: tensor<f32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<f32>
      }
      %clear = fsdp.launch "clear" on "compute" wait(%sent) outs(%x : !fsdp.buffer<tensor<f32>>) {
        %0 = arith.constant dense<0.0> : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<f32>>
      %received = fsdp.launch "receive" on "line" outs(%y : !fsdp.buffer<tensor<f32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
      %log = fsdp.launch "log" on "compute" wait(%received) ins(%y : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%0: tensor<f32>):
        fsdp.output "y" %0
      }
    }
  }
}

//--- crossing.mlir
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    %x = fsdp.buffer "x" persistent : !fsdp.buffer<tensor<f32>>
    fsdp.segment @train train next [@train] {
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<f32>>) {
        %0 = arith.constant dense<7.0> : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
      %t1 = fsdp.launch "send" on "line" ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%0: tensor<f32>):
        fsdp.send %0 offset 1 over ["pipeline"] : tensor<f32>
      }
      %t2 = fsdp.launch "receive" on "line" outs(%y : !fsdp.buffer<tensor<f32>>) {
        %0 = fsdp.receive offset 1 over ["pipeline"] : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %x = fsdp.buffer "x" persistent : !fsdp.buffer<tensor<f32>>
    fsdp.segment @train train next [@train] {
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "set" on "line" outs(%x : !fsdp.buffer<tensor<f32>>) {
        %0 = arith.constant dense<8.0> : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
      %t1 = fsdp.launch "send" on "line" ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%0: tensor<f32>):
        fsdp.send %0 offset -1 over ["pipeline"] : tensor<f32>
      }
      %t2 = fsdp.launch "receive" on "line" outs(%y : !fsdp.buffer<tensor<f32>>) {
        %0 = fsdp.receive offset -1 over ["pipeline"] : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
    }
  }
}

//--- ahead.mlir
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<f32>>
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<f32>>
      %z = fsdp.buffer "z" : !fsdp.buffer<tensor<f32>>
      %set = fsdp.launch "set" on "compute" outs(%x : !fsdp.buffer<tensor<f32>>) {
        %0 = arith.constant dense<7.0> : tensor<f32>
        fsdp.yield %0 : tensor<f32>
      }
      %0 = fsdp.launch "send" on "send_up" wait(%set) ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.send %a offset 1 over ["pipeline"] : tensor<f32>
      }
      %1 = fsdp.launch "receive" on "receive_down" outs(%y : !fsdp.buffer<tensor<f32>>) {
        %a = fsdp.receive offset 1 over ["pipeline"] : tensor<f32>
        fsdp.yield %a : tensor<f32>
      }
      %2 = fsdp.launch "add" on "compute" wait(%1) ins(%y : !fsdp.buffer<tensor<f32>>) outs(%z : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        %b = arith.addf %a, %a : tensor<f32>
        fsdp.yield %b : tensor<f32>
      }
      %3 = fsdp.launch "send again" on "send_up" wait(%2) ins(%z : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.send %a offset 1 over ["pipeline"] : tensor<f32>
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" : !fsdp.buffer<tensor<f32>>
      %y = fsdp.buffer "y" : !fsdp.buffer<tensor<f32>>
      %z = fsdp.buffer "z" : !fsdp.buffer<tensor<f32>>
      %0 = fsdp.launch "receive" on "receive_up" outs(%x : !fsdp.buffer<tensor<f32>>) {
        %a = fsdp.receive offset -1 over ["pipeline"] : tensor<f32>
        fsdp.yield %a : tensor<f32>
      }
      %1 = fsdp.launch "receive again" on "receive_up" outs(%z : !fsdp.buffer<tensor<f32>>) {
        %a = fsdp.receive offset -1 over ["pipeline"] : tensor<f32>
        fsdp.yield %a : tensor<f32>
      }
      %2 = fsdp.launch "double" on "compute" wait(%0) ins(%x : !fsdp.buffer<tensor<f32>>) outs(%y : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        %b = arith.addf %a, %a : tensor<f32>
        fsdp.yield %b : tensor<f32>
      }
      %3 = fsdp.launch "send" on "send_down" wait(%2) ins(%y : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.send %a offset -1 over ["pipeline"] : tensor<f32>
      }
      %4 = fsdp.launch "log" on "compute" wait(%1) ins(%z : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "last" %a
      }
    }
  }
}

//--- both.mlir
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %down = fsdp.buffer "down" : !fsdp.buffer<tensor<2xf32>>
      %up = fsdp.buffer "up" : !fsdp.buffer<tensor<f32>>
      %0 = fsdp.launch "receive down" on "receive" outs(%down : !fsdp.buffer<tensor<2xf32>>) {
        %a = fsdp.receive offset 1 over ["pipeline"] : tensor<2xf32>
        fsdp.yield %a : tensor<2xf32>
      }
      %1 = fsdp.launch "receive up" on "receive_up" outs(%up : !fsdp.buffer<tensor<f32>>) {
        %a = fsdp.receive offset -1 ring over ["pipeline"] : tensor<f32>
        fsdp.yield %a : tensor<f32>
      }
      %sum = fsdp.buffer "sum" : !fsdp.buffer<tensor<f32>>
      %2 = fsdp.launch "add" on "compute" wait(%0) ins(%down : !fsdp.buffer<tensor<2xf32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<2xf32>):
        %b = nn.reduce sum "i ->" %a : tensor<2xf32> -> tensor<f32>
        fsdp.yield %b : tensor<f32>
      }
      %4 = fsdp.launch "log down" on "compute" ins(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "down" %a
      }
      %3 = fsdp.launch "log up" on "compute" wait(%1) ins(%up : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "up" %a
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %down = fsdp.buffer "down" : !fsdp.buffer<tensor<2xf32>>
      %up = fsdp.buffer "up" : !fsdp.buffer<tensor<f32>>
      %set = fsdp.launch "set" on "compute" outs(%down, %up : !fsdp.buffer<tensor<2xf32>>, !fsdp.buffer<tensor<f32>>) {
        %a = arith.constant dense<1.5> : tensor<2xf32>
        %b = arith.constant dense<4.0> : tensor<f32>
        fsdp.yield %a, %b : tensor<2xf32>, tensor<f32>
      }
      %0 = fsdp.launch "send up" on "send" wait(%set) ins(%up : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.send %a offset 1 ring over ["pipeline"] : tensor<f32>
      }
      %1 = fsdp.launch "send down" on "send" ins(%down : !fsdp.buffer<tensor<2xf32>>) {
      ^bb0(%a: tensor<2xf32>):
        fsdp.send %a offset -1 over ["pipeline"] : tensor<2xf32>
      }
    }
  }
}
