// Places of messages: a receive is issued one part ahead and waits for the computation before it, and what computes the
// messages of a part waits until those of the part before the previous one, of the same direction, are sent.
// RUN: fsdp-opt --fsdp-schedule %s -o %t.scheduled && FileCheck %s --input-file=%t.scheduled
// RUN: fsdp-opt --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule %t.scheduled -o %t.planned

// Parts of forward send two values. Both directions of the first role go up.
// CHECK-LABEL: fsdp.program @first
// CHECK: fsdp.launch "y" on "compute" of microbatch 0 outs
// CHECK: fsdp.launch "z" on "compute" of microbatch 0 ins
// CHECK: %[[Z:.*]] = fsdp.launch "z send" on {{.*}} microbatch 0
// CHECK: fsdp.launch "y" on "compute" of microbatch 1 outs
// CHECK: %[[Z2:.*]] = fsdp.launch "z" on "compute" of microbatch 1 ins
// CHECK: fsdp.launch "g receive" on {{.*}} of backward microbatch 0 wait(%[[Z2]]) outs
// CHECK: fsdp.launch "y" on "compute" of microbatch 2 wait(%[[Z]]) outs
// CHECK: %[[Z3:.*]] = fsdp.launch "z" on "compute" of microbatch 2 ins
// CHECK: %[[G2:.*]] = fsdp.launch "g receive" on {{.*}} of backward microbatch 1 wait(%[[Z3]]) outs
// CHECK: %[[D:.*]] = fsdp.launch "d" on "compute" of backward microbatch 0 wait
// CHECK: %[[SENT:.*]] = fsdp.launch "d send" on {{.*}} of backward microbatch 0 wait(%[[D]]) ins
// CHECK: %[[G3:.*]] = fsdp.launch "g receive" on {{.*}} of backward microbatch 2 wait(%[[D]]) outs
// CHECK: fsdp.launch "d" on "compute" of backward microbatch 1 wait(%[[G2]]) ins
// CHECK: fsdp.launch "d" on "compute" of backward microbatch 2 wait(%[[SENT]], %[[G3]]) ins

// CHECK-LABEL: fsdp.program @second
// CHECK: fsdp.launch "y receive" on {{.*}} microbatch 0{{.*}} outs
// CHECK: fsdp.launch "y receive" on {{.*}} of microbatch 1 outs
// CHECK: %[[W:.*]] = fsdp.launch "w" on "compute" of microbatch 0 wait
// CHECK: fsdp.launch "y receive" on {{.*}} of microbatch 2 wait(%[[W]]) outs
// CHECK: fsdp.launch "z receive" on {{.*}} of microbatch 2 outs
// CHECK: fsdp.launch "g" on "compute" of backward microbatch 0 ins
// CHECK: %[[G:.*]] = fsdp.launch "g send" on {{.*}} microbatch 0
// CHECK: fsdp.launch "g" on "compute" of backward microbatch 1 ins
// CHECK: fsdp.launch "g" on "compute" of backward microbatch 2 wait(%[[G]]) ins

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      %y0 = arith.addf %c, %c {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("y")
      fsdp.send %y0 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("y")
      %z0 = arith.mulf %y0, %y0 {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("z")
      fsdp.send %z0 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("z")
      %y1 = arith.addf %c, %c {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("y")
      fsdp.send %y1 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("y")
      %z1 = arith.mulf %y1, %y1 {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("z")
      fsdp.send %z1 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("z")
      %y2 = arith.addf %c, %c {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("y")
      fsdp.send %y2 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("y")
      %z2 = arith.mulf %y2, %y2 {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("z")
      fsdp.send %z2 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("z")
      %g0 = fsdp.receive offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("g")
      %d0 = arith.mulf %g0, %y0 {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("d")
      fsdp.send %d0 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("d")
      %g1 = fsdp.receive offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("g")
      %d1 = arith.mulf %g1, %y1 {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("d")
      fsdp.send %d1 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("d")
      %g2 = fsdp.receive offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("g")
      %d2 = arith.mulf %g2, %y2 {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("d")
      fsdp.send %d2 offset 1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("d")
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %y0 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("y")
      %z0 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("z")
      %w0 = arith.addf %y0, %z0 {fsdp.structure = #fsdp.structure<microbatch 0>} : tensor<4xf32> loc("w")
      %y1 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("y")
      %z1 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("z")
      %w1 = arith.addf %y1, %z1 {fsdp.structure = #fsdp.structure<microbatch 1>} : tensor<4xf32> loc("w")
      %y2 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("y")
      %z2 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("z")
      %w2 = arith.addf %y2, %z2 {fsdp.structure = #fsdp.structure<microbatch 2>} : tensor<4xf32> loc("w")
      %g0 = arith.mulf %w0, %w0 {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("g")
      fsdp.send %g0 offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("g")
      %g1 = arith.mulf %w1, %w1 {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("g")
      fsdp.send %g1 offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("g")
      %g2 = arith.mulf %w2, %w2 {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("g")
      fsdp.send %g2 offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("g")
      %d0 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("d")
      %f0 = arith.negf %d0 {fsdp.structure = #fsdp.structure<backward microbatch 0>} : tensor<4xf32> loc("f")
      %d1 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("d")
      %f1 = arith.negf %d1 {fsdp.structure = #fsdp.structure<backward microbatch 1>} : tensor<4xf32> loc("f")
      %d2 = fsdp.receive offset -1 over ["pipeline"] {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("d")
      %f2 = arith.negf %d2 {fsdp.structure = #fsdp.structure<backward microbatch 2>} : tensor<4xf32> loc("f")
    }
  }
}
