// A step in microbatches: one segment for each place of a microbatch in the step, sums in carried tensors.
// RUN: fsdp-opt --fsdp-to-local=accumulate=4 %s | FileCheck %s
// RUN: fsdp-opt --fsdp-to-local="accumulate=4 accumulate-reduce=last" %s | FileCheck %s --check-prefix=LAST
// RUN: fsdp-opt --fsdp-to-local=accumulate=5 %s | FileCheck %s --check-prefix=EVEN
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @kernel : tensor<5x3xf32> unit "layer" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01, clip = 1.0> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %kernel = fsdp.read @kernel : tensor<5x3xf32>
  %product = nn.einsum "bi,io->bo" %x, %kernel : (tensor<10x5xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %error = arith.subf %product, %y : tensor<10x3xf32>
  %square = arith.mulf %error, %error : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<10x3xf32> -> tensor<f64>
  %count = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// The axis of microbatches is gone.
// CHECK: fsdp.mesh @mesh <["fsdp"=2]>
// CHECK-DAG: fsdp.carried @layer.flat.accumulator : tensor<16xf32> of @layer.flat
// CHECK-DAG: fsdp.carried @[[LOSS:.*]] : tensor<f64>
// CHECK: fsdp.walk @train train [@train.first, @train.middle, @train.last, @train.update] times [1, 2, 1, 1]
// CHECK: fsdp.walk @evaluate evaluate [@evaluate.first, @evaluate.middle, @evaluate.last, @evaluate.end] times [1, 2, 1, 1]

// 5 samples of a rank in parts of 2: some of the last part count, known when it runs.
// CHECK: fsdp.segment @train.first train next [@train.middle]
// CHECK: fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 4 : tensor<2x5xf32>
// CHECK: %[[N:.*]] = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 4
// CHECK: fsdp.mask_samples %{{.*}}, %{{.*}} dim 0 fill 0.000000e+00
// The first microbatch writes the sums: nothing is zeroed, nothing loaded.
// CHECK-NOT: fsdp.carry_load
// CHECK: %[[SCATTERED:.*]] = fsdp.reduce_scatter
// CHECK-NEXT: fsdp.carry_store %[[SCATTERED]], @layer.flat.accumulator
// CHECK: fsdp.next_microbatch of 4

// CHECK: fsdp.segment @train.middle train next [@train.middle, @train.last]
// CHECK: %[[SCATTERED:.*]] = fsdp.reduce_scatter
// CHECK-NEXT: %[[OLD:.*]] = fsdp.carry_load @layer.flat.accumulator
// CHECK-NEXT: %[[NEW:.*]] = arith.addf %[[OLD]], %[[SCATTERED]]
// CHECK-NEXT: fsdp.carry_store %[[NEW]], @layer.flat.accumulator

// CHECK: fsdp.segment @train.last train next [@train.update]
// CHECK: fsdp.segment @train.update train next [@train.first, @evaluate.first]
// CHECK-NOT: fsdp.input
// CHECK: %[[SUM:.*]] = fsdp.carry_load @[[LOSS]]
// CHECK-NEXT: fsdp.all_reduce sum %[[SUM]] over ["fsdp"]
// CHECK: fsdp.output "loss"
// CHECK: %[[GRADIENT:.*]] = fsdp.carry_load @layer.flat.accumulator
// CHECK: fsdp.square_sum %[[GRADIENT]]
// The norm is that of the gradient of sum / weight before it is looked at, and so is what clips.
// CHECK: %[[SHARE:.*]] = arith.constant dense<3.000000e+01>
// CHECK: fsdp.optimizer_step
// CHECK: fsdp.advance
// CHECK: fsdp.segment @evaluate.first evaluate
// CHECK: fsdp.segment @evaluate.end evaluate next [@train.first, @evaluate.first]
// CHECK: fsdp.output_sum "loss"

// Gradients of all members are added up before they are reduced, once.
// LAST-DAG: fsdp.carried @layer.flat.accumulator : tensor<15xf32> of @layer.flat
// LAST-DAG: fsdp.carried @layer.flat.reduced : tensor<16xf32> of @layer.flat
// LAST: fsdp.segment @train.first
// LAST-NOT: fsdp.reduce_scatter
// LAST: fsdp.segment @train.last
// LAST: fsdp.carry_load @layer.flat.accumulator
// LAST-NEXT: %[[NEW:.*]] = arith.addf
// LAST-NEXT: fsdp.carry_store %[[NEW]], @layer.flat.accumulator
// LAST-NEXT: %[[REDUCED:.*]] = fsdp.reduce_scatter %[[NEW]]
// LAST-NEXT: fsdp.carry_store %[[REDUCED]], @layer.flat.reduced
// LAST: fsdp.segment @train.update
// LAST: fsdp.carry_load @layer.flat.reduced

// A batch that divides needs no mask, and nobody asks which microbatch it is.
// EVEN: tensor<1x5xf32>
// EVEN-NOT: {{fsdp.microbatch_samples|fsdp.next_microbatch|fsdp.mask}}
// EVEN: fsdp.segment @train.update
