// The batch of the next microbatch is loaded while this one is computed: into a place of its own, which is copied.
// RUN: fsdp-opt --fsdp-to-local=accumulate=4 --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-to-local --fsdp-schedule %s | FileCheck %s --check-prefix=WHOLE
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @kernel : tensor<5x3xf32> unit "layer" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<16x5xf32>
  %kernel = fsdp.read @kernel : tensor<5x3xf32>
  %product = nn.einsum "bi,io->bo" %x, %kernel : (tensor<16x5xf32>, tensor<5x3xf32>) -> tensor<16x3xf32>
  %square = arith.mulf %product, %product : tensor<16x3xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<16x3xf32> -> tensor<f64>
  %count = arith.constant dense<48.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// One place for training and evaluation, 2 samples of 5 numbers.
// CHECK: %[[STAGED:.*]] = fsdp.buffer "input.x.staged" persistent offset {{[0-9]+}} : <tensor<2x5xf32>>
// CHECK-NOT: .staged"
// CHECK-DAG: %[[COPIED:.*]] = fsdp.event "input x copy"

// CHECK: fsdp.segment @train.first train async
// CHECK: %[[X:.*]] = fsdp.buffer "input.x" offset
// CHECK: fsdp.subview %[[X]]
// CHECK: %[[LOADED:.*]] = fsdp.launch "input x" on "input"{{.*}} outs(%[[STAGED]] :
// CHECK: fsdp.launch "input x copy" on "compute"{{.*}} wait(%[[LOADED]]{{.*}}) records(%[[COPIED]]{{.*}}) ins(%[[STAGED]] :

// The load of the next one waits for the copy of this one, for nothing that computes with it.
// CHECK: fsdp.segment @train.middle train async
// CHECK: fsdp.launch "input x" on "input" wait(%[[COPIED]]) outs(%[[STAGED]] :
// CHECK: fsdp.segment @train.last train async
// CHECK: fsdp.launch "input x" on "input" wait(%[[COPIED]]) outs(%[[STAGED]] :
// CHECK: fsdp.segment @evaluate.first evaluate async
// CHECK: fsdp.launch "input x" on "input" wait(%[[COPIED]]) outs(%[[STAGED]] :

// A step that loads its batch at once has nothing to load meanwhile.
// WHOLE-NOT: staged
// WHOLE: fsdp.launch "input x" on "input"
// WHOLE-NOT: "input x copy"
