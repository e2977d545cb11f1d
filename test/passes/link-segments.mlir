// What follows a segment without a join waits for what still uses its bytes, and for nothing else.
// RUN: fsdp-opt --fsdp-link-segments --fsdp-verify-schedule %s | FileCheck %s
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  // CHECK-LABEL: fsdp.program @all
  fsdp.program @all role {} arena 256 {
    %sum = fsdp.buffer "sum" persistent offset 0 : !fsdp.buffer<tensor<8xf32>>
    // CHECK-DAG: %[[A:.*]] = fsdp.event "a"
    // CHECK-DAG: %[[ADD:.*]] = fsdp.event "add"
    fsdp.walk @step train [@first, @second] times [1, 1]
    fsdp.walk @other evaluate [@alone] times [1]
    // CHECK: fsdp.segment @first train async
    fsdp.segment @first train next [@second] {
      %x = fsdp.buffer "x" offset 64 : !fsdp.buffer<tensor<8xf32>>
      // Bytes that the segment before has read on another stream, and the persistent ones.
      // CHECK: fsdp.launch "x" on "copy" wait(%[[ADD]])
      %t0 = fsdp.launch "x" on "copy" outs(%x : !fsdp.buffer<tensor<8xf32>>) {
        %c = arith.constant dense<1.0> : tensor<8xf32>
        fsdp.yield %c : tensor<8xf32>
      }
      // The same stream needs no event.
      // CHECK: fsdp.launch "a" on "compute" wait(%{{.*}}) records(%[[A]])
      %t1 = fsdp.launch "a" on "compute" wait(%t0) ins(%x : !fsdp.buffer<tensor<8xf32>>) outs(%sum : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%v: tensor<8xf32>):
        %n = arith.negf %v : tensor<8xf32>
        fsdp.yield %n : tensor<8xf32>
      }
    }
    // CHECK: fsdp.segment @second train async
    fsdp.segment @second train next [@first, @alone] {
      %y = fsdp.buffer "y" offset 64 : !fsdp.buffer<tensor<8xf32>>
      // CHECK: fsdp.launch "y" on "copy" wait(%[[A]])
      %t0 = fsdp.launch "y" on "copy" outs(%y : !fsdp.buffer<tensor<8xf32>>) {
        %c = arith.constant dense<2.0> : tensor<8xf32>
        fsdp.yield %c : tensor<8xf32>
      }
      // CHECK: fsdp.launch "add" on "compute" wait(%{{.*}}) records(%[[ADD]]) ins
      %t1 = fsdp.launch "add" on "compute" wait(%t0) ins(%sum, %y : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) outs(%sum : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %n = arith.addf %a, %b : tensor<8xf32>
        fsdp.yield %n : tensor<8xf32>
      }
    }
    // A walk through one segment is not joined either: its own next run waits as well.
    // CHECK: fsdp.segment @alone evaluate async next
    fsdp.segment @alone evaluate next [@first, @alone] {
      %z = fsdp.buffer "z" offset 128 : !fsdp.buffer<tensor<8xf32>>
      // CHECK: fsdp.launch "z" on "copy" wait(%[[NEG:[0-9]+]]) outs
      %t0 = fsdp.launch "z" on "copy" outs(%z : !fsdp.buffer<tensor<8xf32>>) {
        %c = arith.constant dense<2.0> : tensor<8xf32>
        fsdp.yield %c : tensor<8xf32>
      }
      // CHECK: fsdp.launch "neg" on "compute" wait(%{{.*}}) records(%[[NEG]])
      %t1 = fsdp.launch "neg" on "compute" wait(%t0) ins(%z : !fsdp.buffer<tensor<8xf32>>) outs(%z : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%v: tensor<8xf32>):
        %n = arith.negf %v : tensor<8xf32>
        fsdp.yield %n : tensor<8xf32>
      }
    }
  }
}
