// Sends and receives: of one program for all ranks, and of two roles.
// RUN: fsdp-opt %s --fsdp-verify-phase | fsdp-opt --fsdp-verify-phase | FileCheck %s
// A receive whose result is unused stays, and equal ones are two: what is sent has to be taken.
// RUN: fsdp-opt %s --cse --canonicalize --loop-invariant-code-motion | FileCheck %s

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2, "context"=3]>
  // CHECK: fsdp.program @first role {pipeline = 0 : i64}
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0> : tensor<3xf32>
      // CHECK: fsdp.send %[[X:.*]] offset 1 over ["pipeline"] : tensor<3xf32>
      fsdp.send %x offset 1 over ["pipeline"] : tensor<3xf32>
      // CHECK-NEXT: fsdp.send %[[X]] offset 1 over ["pipeline"] : tensor<3xf32>
      fsdp.send %x offset 1 over ["pipeline"] : tensor<3xf32>
      // All ranks of the role, but the last one along the axis, send.
      // CHECK-NEXT: fsdp.send %[[X]] offset -2 over ["context"] : tensor<3xf32>
      fsdp.send %x offset -2 over ["context"] : tensor<3xf32>
      // CHECK-NEXT: fsdp.receive offset 2 over ["context"] : tensor<3xf32>
      %y = fsdp.receive offset 2 over ["context"] : tensor<3xf32>
      // In a ring each rank has a peer.
      // CHECK-NEXT: fsdp.send %[[X]] offset 2 ring over ["context"] : tensor<3xf32>
      fsdp.send %x offset 2 ring over ["context"] : tensor<3xf32>
      // CHECK-NEXT: fsdp.receive offset -2 ring over ["context"] : tensor<3xf32>
      %z = fsdp.receive offset -2 ring over ["context"] : tensor<3xf32>
    }
  }
  // CHECK: fsdp.program @second role {pipeline = 1 : i64}
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      // CHECK: fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
      // CHECK-NEXT: fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
      %a = fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
      %b = fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
    }
  }
}
