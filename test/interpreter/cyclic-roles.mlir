// Two roles, the first a segment ahead: what it sends in one segment the second takes in its next one. Collectives of
// a stream and its axes meet in the order in which each rank issues them, whatever the segment.
// DEFINE: %{seeds} = %{python} %S/Inputs/seeds.py
// RUN: %{seeds} all 25 fsdp-run %s --steps=3 | FileCheck %s
// Each step the first role sends 1, then 2, then 3.
// CHECK: step 1 total 6{{$}}
// CHECK: step 2 total 6{{$}}
// CHECK: step 3 total 6{{$}}

// The second role lacks one of the collectives: the first waits in it for ever. In a joined segment it is its
// host that waits; in an async one only the end of the run tells.
// RUN: sed '/@warmup,/s/times \[1, 3, 1\]/times [1, 2, 1]/' %s > %t.lacking.mlir
// RUN: %{seeds} some 4 fsdp-run %t.lacking.mlir | FileCheck %s --check-prefix=LACKING
// LACKING: refused with 4 of 4 seeds
// LACKING: error: 'fsdp.launch' op 'send': no rank can continue
// LACKING: note: rank 0, stream 'pipeline': 'send' waits in 'fsdp.all_reduce sum over ["pipeline"] : tensor<f32> -> tensor<f32>' for ranks [0, 1]
// RUN: sed '/segment @forward/s/async //' %t.lacking.mlir > %t.joined.mlir
// RUN: %{seeds} some 4 fsdp-run %t.joined.mlir | FileCheck %s --check-prefix=JOINED
// JOINED: refused with 4 of 4 seeds
// JOINED: error: 'fsdp.launch' op 'send': no rank can continue
// JOINED: note: rank 0: segment 'cooldown' is issued once all of segment 'forward' is done

// What is sent is overwritten while it is on its way.
// RUN: sed 's/ wait(%%sent)//' %s | %{seeds} some 25 fsdp-run - --steps=2 | FileCheck %s --check-prefix=SENT
// SENT: error: 'fsdp.launch' op '{{next|send}}' races with '{{next|send}}' on rank 0: both use bytes of buffer 'sent'; let the later one wait
// SENT: note: '{{next|send}}' is in flight here, in another run of segment 'forward'

// The roles do not do the same.
// RUN: sed '/"take"/,/yield/s/all_reduce sum/all_reduce max/' %s | %{seeds} some 2 fsdp-run - | FileCheck %s --check-prefix=DIFFER
// DIFFER: error: ranks call different collectives: rank 0 at 'fsdp.all_reduce sum over ["pipeline"] : tensor<f32> -> tensor<f32>', rank 1 at 'fsdp.all_reduce max over ["pipeline"] : tensor<f32> -> tensor<f32>'
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    %kept = fsdp.buffer "kept" persistent : !fsdp.buffer<tensor<f32>>
    %buffer = fsdp.buffer "sent" persistent : !fsdp.buffer<tensor<f32>>
    %sent = fsdp.event "sent"
    fsdp.walk @train train [@start, @forward, @cooldown] times [1, 3, 1]
    fsdp.segment @start train async next [@forward] {
      %t0 = fsdp.launch "start" on "compute" outs(%kept : !fsdp.buffer<tensor<f32>>) {
        %x = arith.constant dense<0.0> : tensor<f32>
        fsdp.yield %x : tensor<f32>
      }
    }
    fsdp.segment @forward train async next [@forward, @cooldown] {
      %t0 = fsdp.launch "next" on "compute" wait(%sent) ins(%kept : !fsdp.buffer<tensor<f32>>) outs(%kept, %buffer : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>):
        %one = arith.constant dense<1.0> : tensor<f32>
        %y = arith.addf %x, %one : tensor<f32>
        fsdp.yield %y, %y : tensor<f32>, tensor<f32>
      }
      %t1 = fsdp.launch "send" on "pipeline" wait(%t0) records(%sent) ins(%buffer : !fsdp.buffer<tensor<f32>>) outs(%buffer : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>):
        %y = fsdp.all_reduce sum %x over ["pipeline"] : tensor<f32>
        fsdp.yield %y : tensor<f32>
      }
    }
    fsdp.segment @cooldown train async next [@start] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    %total = fsdp.buffer "total" persistent : !fsdp.buffer<tensor<f32>>
    %taken = fsdp.event "taken"
    fsdp.walk @train train [@warmup, @backward, @end] times [1, 3, 1]
    fsdp.segment @warmup train async next [@backward] {
      %t0 = fsdp.launch "zero" on "compute" outs(%total : !fsdp.buffer<tensor<f32>>) {
        %x = arith.constant dense<0.0> : tensor<f32>
        fsdp.yield %x : tensor<f32>
      }
    }
    fsdp.segment @backward train async next [@backward, @end] {
      %zero = fsdp.buffer "zero" : !fsdp.buffer<tensor<f32>>
      %got = fsdp.buffer "got" : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "nothing" on "pipeline" outs(%zero : !fsdp.buffer<tensor<f32>>) {
        %x = arith.constant dense<0.0> : tensor<f32>
        fsdp.yield %x : tensor<f32>
      }
      %t1 = fsdp.launch "take" on "pipeline" wait(%taken) ins(%zero : !fsdp.buffer<tensor<f32>>) outs(%got : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>):
        %y = fsdp.all_reduce sum %x over ["pipeline"] : tensor<f32>
        fsdp.yield %y : tensor<f32>
      }
      %t2 = fsdp.launch "add" on "compute" wait(%t1) records(%taken) ins(%total, %got : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) outs(%total : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = arith.addf %x, %y : tensor<f32>
        fsdp.yield %z : tensor<f32>
      }
    }
    fsdp.segment @end train async next [@warmup] {
      %t0 = fsdp.launch "log" on "compute" ins(%total : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>):
        fsdp.output "total" %x
        fsdp.yield
      }
    }
  }
}
