// Generic passes ask launches for their memory effects: a launch that writes nothing, and for which nothing waits, is removed.
// RUN: fsdp-opt %s --cse --canonicalize --cse | FileCheck %s

module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %sum = fsdp.buffer "sum" persistent zeroed offset 256 : !fsdp.buffer<tensor<f32>>
    %done = fsdp.event "sum.done"
    // CHECK-LABEL: fsdp.segment @train
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" offset 320 : !fsdp.buffer<tensor<f32>>
      // It writes a buffer.
      // CHECK: fsdp.launch "writes"
      %t0 = fsdp.launch "writes" on "compute" outs(%x : !fsdp.buffer<tensor<f32>>) {
        %c = arith.constant dense<1.0> : tensor<f32>
        fsdp.yield %c : tensor<f32>
      }
      // A read alone has no effect, whether the value is used or not.
      // CHECK-NOT: "reads"
      %t1 = fsdp.launch "reads" on "compute" wait(%t0) ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        %n = arith.negf %v : tensor<f32>
        fsdp.yield
      }
      // Equal launches that write are two.
      // CHECK: fsdp.launch "adds" on "compute" wait
      // CHECK: fsdp.launch "adds" on "compute" wait
      %t2 = fsdp.launch "adds" on "compute" wait(%t0) ins(%x, %sum : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %n = arith.addf %a, %b : tensor<f32>
        fsdp.yield %n : tensor<f32>
      }
      %t3 = fsdp.launch "adds" on "compute" wait(%t0) ins(%x, %sum : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) outs(%sum : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %n = arith.addf %a, %b : tensor<f32>
        fsdp.yield %n : tensor<f32>
      }
      // Later segments wait for the event that a launch records.
      // CHECK: fsdp.launch "records" on "compute" records
      %t4 = fsdp.launch "records" on "compute" records(%done) {
        fsdp.yield
      }
      // Another launch waits for this one.
      // CHECK: fsdp.launch "awaited"
      %t5 = fsdp.launch "awaited" on "input" {
        fsdp.yield
      }
      // Two equal transfers are two messages, and an output is read by the host.
      // CHECK: fsdp.launch "sends" on "send_up" wait
      // CHECK: fsdp.launch "sends" on "send_up" wait
      // CHECK: fsdp.launch "loss"
      %t6 = fsdp.launch "sends" on "send_up" wait(%t5) ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.send %v offset 1 over ["pipeline"] : tensor<f32>
        fsdp.yield
      }
      %t7 = fsdp.launch "sends" on "send_up" wait(%t5) ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.send %v offset 1 over ["pipeline"] : tensor<f32>
        fsdp.yield
      }
      %t8 = fsdp.launch "loss" on "compute" ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "loss" %v
        fsdp.yield
      }
      // The step state is written, though the launch has no outs.
      // CHECK: fsdp.launch "advance"
      %t9 = fsdp.launch "advance" on "compute" step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %ok = arith.constant dense<true> : tensor<i1>
        fsdp.advance if %ok
        fsdp.yield
      }
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
    }
  }
}
