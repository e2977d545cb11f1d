// Segments that are not joined, events and walks.
// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
fsdp.mesh @mesh <["fsdp"=1]>
// CHECK-LABEL: fsdp.program @all
fsdp.program @all role {} {
  // CHECK: %[[SUM:.*]] = fsdp.buffer "sum" persistent offset 0
  %sum = fsdp.buffer "sum" persistent offset 0 : !fsdp.buffer<tensor<8xf32>>
  // CHECK: fsdp.buffer "ok" persistent zeroed offset 64
  %ok = fsdp.buffer "ok" persistent zeroed offset 64 : !fsdp.buffer<tensor<i1>>
  // CHECK: %[[DONE:.*]] = fsdp.event "sum.done"
  %done = fsdp.event "sum.done"
  // CHECK: fsdp.walk @train train [@first, @middle, @last] times [1, 2, 1]
  fsdp.walk @train train [@first, @middle, @last] times [1, 2, 1]
  // CHECK: fsdp.segment @first train async next [@middle]
  fsdp.segment @first train async next [@middle] {
    // CHECK: fsdp.launch "start" on "compute" wait(%[[DONE]]) records(%[[DONE]]) outs(%[[SUM]]
    %t = fsdp.launch "start" on "compute" wait(%done) records(%done) outs(%sum : !fsdp.buffer<tensor<8xf32>>) {
      %x = arith.constant dense<1.0> : tensor<8xf32>
      fsdp.yield %x : tensor<8xf32>
    }
  }
  fsdp.segment @middle train async next [@middle, @last] {
  }
  // CHECK: fsdp.segment @last train next [@first]
  fsdp.segment @last train next [@first] {
  }
}
