// RUN: fsdp-opt %s --fsdp-to-local="accumulate=2 pipeline-schedule=gpipe" | FileCheck %s --check-prefixes=CHECK,GPIPE
// RUN: fsdp-opt %s --fsdp-to-local="accumulate=2 pipeline-schedule=zb" | FileCheck %s --check-prefixes=CHECK,ZB
// RUN: fsdp-opt %s --fsdp-to-local="accumulate=2 reshard-after-forward=never" | FileCheck %s --check-prefix=NEVER
// RUN: not fsdp-opt %s --fsdp-to-local="accumulate=3 pipeline-schedule=interleaved:1" 2>&1 | FileCheck %s --check-prefix=INTERLEAVED
// INTERLEAVED: error: --pipeline-schedule=interleaved:1 got 3 microbatches, expected a multiple of the 2 ranks along axis 'pipeline'; give --accumulate such a number
// RUN: not fsdp-opt --fsdp-pipeline-microbatches=schedule=zigzag %s 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: --pipeline-schedule: got 'zigzag', expected gpipe, 1f1b, zb, or interleaved:V

// Each rank owns the storages that it computes with; the table of a tied weight is on both.
// CHECK: fsdp.storage @ends.stage0_1.flat : tensor<16xf32> flat over ["fsdp"] states
// CHECK: fsdp.storage @ends.stage0.flat {{.*}} roles [@pipeline0]
// CHECK: fsdp.storage @ends.stage1.flat {{.*}} roles [@pipeline1]
// CHECK: fsdp.storage @middle.flat {{.*}} roles [@pipeline0]
// CHECK-LABEL: fsdp.program @pipeline0 role {pipeline = 0 : i64}
// CHECK: fsdp.segment @train train next [@train, @evaluate]
// CHECK: fsdp.input "x" {{.*}} microbatches 2 at 0
// CHECK: fsdp.send %{{.*}} offset 1 over ["pipeline"] message 0 {fsdp.structure = #fsdp.structure<"middle" microbatch 0>}
// CHECK: fsdp.input "x" {{.*}} microbatches 2 at 1
// CHECK: fsdp.send %{{.*}} offset 1 over ["pipeline"] message 0 {fsdp.structure = #fsdp.structure<"middle" microbatch 1>}
// CHECK: fsdp.receive offset 1 over ["pipeline"] message 1 {fsdp.structure = #fsdp.structure<"ends" backward microbatch 0>}
// The gradient of the product's weight precedes its cotangent; with `zb` it follows all that uses a weight.
// GPIPE: nn.einsum "bi,bo->io" {{.*}}#fsdp.structure<"middle" backward microbatch 0>
// GPIPE: fsdp.all_gather {{.*}}#fsdp.structure<"middle" backward microbatch 0>
// ZB: fsdp.all_gather {{.*}}#fsdp.structure<"middle" backward microbatch 0>
// ZB: nn.einsum "bi,bo->io" {{.*}}#fsdp.structure<"middle" backward microbatch 0>
// GPIPE: fsdp.receive offset 1 over ["pipeline"] message 1 {fsdp.structure = #fsdp.structure<"ends" backward microbatch 1>}
// Microbatches add to gradients in order.
// CHECK: %[[OWN:.*]] = arith.addf %{{.*}}, %{{.*}} {fsdp.structure = #fsdp.structure<"ends.stage0_1" backward microbatch 1>}
// The shards of the tied weight are exchanged and added in one order; squares and the loss go around in one call, in which the others add zero.
// CHECK: %[[THEIRS:.*]] = fsdp.receive offset 1 over ["pipeline"] message 0 {fsdp.structure = #fsdp.structure<update>}
// CHECK: fsdp.send %[[OWN]] offset 1 over ["pipeline"] message 1 {fsdp.structure = #fsdp.structure<update>}
// CHECK: fsdp.all_reduce sum %{{.*}} over ["pipeline"] {{.*}} : tensor<4xf64>
// CHECK-NOT: over ["pipeline"]
// CHECK: arith.addf %[[THEIRS]], %[[OWN]] {fsdp.reduces = @ends.stage0_1.flat
// CHECK: fsdp.output "loss"
// CHECK: fsdp.output "grad_norm"
// CHECK-COUNT-3: fsdp.optimizer_step
// CHECK: fsdp.segment @evaluate evaluate
// CHECK: fsdp.output_sum "loss"
// CHECK-LABEL: fsdp.program @pipeline1 role {pipeline = 1 : i64}
// CHECK: fsdp.receive offset -1 over ["pipeline"] message 0 {fsdp.structure = #fsdp.structure<"middle" stage 1 microbatch 0>}
// CHECK: fsdp.send %{{.*}} offset -1 over ["pipeline"] message 1 {fsdp.structure = #fsdp.structure<"ends" backward stage 1 microbatch 0>}
// CHECK: fsdp.optimizer_step <sgd, lr = 1.000000e-01> @ends.stage1.flat
// CHECK: fsdp.optimizer_step <sgd, lr = 1.000000e-01> @ends.stage0_1.flat

// With `never` a unit is gathered once a step, and kept for all microbatches.
// NEVER-LABEL: fsdp.program @pipeline0
// NEVER-COUNT-3: fsdp.all_gather
// NEVER-NOT: fsdp.all_gather
// NEVER: fsdp.segment @evaluate

// A unit that is used in two places counts twice; its parameters that different ranks use become units: the table of both ends, what
// the first stage alone uses, and what the last one does. The read of the table is one for each stage.
fsdp.mesh @mesh <["pipeline"=2, "fsdp"=2]>
fsdp.param @table : tensor<4x4xf32> unit "ends" init <normal, 2.0e-02>
fsdp.param @first : tensor<4xf32> unit "ends" init <normal, 2.0e-02>
fsdp.param @last : tensor<4xf32> unit "ends" init <normal, 2.0e-02>
fsdp.param @middle : tensor<4x4xf32> unit "middle" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %table = fsdp.read @table {fsdp.structure = #fsdp.structure<"ends">} : tensor<4x4xf32>
  %0 = nn.einsum "bi,io->bo" %x, %table {fsdp.structure = #fsdp.structure<"ends">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %first = fsdp.read @first {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32>
  %rows = nn.repeat "o -> b o" %first {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32> -> tensor<8x4xf32>
  %1 = arith.addf %0, %rows {fsdp.structure = #fsdp.structure<"ends">} : tensor<8x4xf32>
  %middle = fsdp.read @middle {fsdp.structure = #fsdp.structure<"middle">} : tensor<4x4xf32>
  %2 = nn.einsum "bi,io->bo" %1, %middle {fsdp.structure = #fsdp.structure<"middle">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %last = fsdp.read @last {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32>
  %more = nn.repeat "o -> b o" %last {fsdp.structure = #fsdp.structure<"ends">} : tensor<4xf32> -> tensor<8x4xf32>
  %3 = arith.addf %2, %more {fsdp.structure = #fsdp.structure<"ends">} : tensor<8x4xf32>
  %4 = nn.einsum "bi,io->bo" %3, %table {fsdp.structure = #fsdp.structure<"ends">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %4 {fsdp.structure = #fsdp.structure<"ends">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
