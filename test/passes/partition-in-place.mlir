// Gradients of replicated parameters are reduced where they were added up: no second copy of them is carried.
// RUN: fsdp-opt --fsdp-to-local="accumulate=3 strategy=ddp" %s | FileCheck %s
// RUN: fsdp-opt --fsdp-to-local="accumulate=3 strategy=ddp" --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule %s | FileCheck %s --check-prefix=PLANNED
// RUN: fsdp-opt --fsdp-to-local="strategy=ddp" --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule %s | FileCheck %s --check-prefix=WHOLE
// A shard is scattered to where the reduction over its replicas leaves it.
// RUN: fsdp-opt --fsdp-to-local="accumulate=3 accumulate-reduce=last strategy=hsdp" --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule %s | FileCheck %s --check-prefix=SHARDS
fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.param @kernel : tensor<5x3xf32> unit "layer" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<24x5xf32>
  %kernel = fsdp.read @kernel : tensor<5x3xf32>
  %product = nn.einsum "bi,io->bo" %x, %kernel : (tensor<24x5xf32>, tensor<5x3xf32>) -> tensor<24x3xf32>
  %square = arith.mulf %product, %product : tensor<24x3xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<24x3xf32> -> tensor<f64>
  %count = arith.constant dense<72.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// CHECK-NOT: .reduced
// CHECK: fsdp.segment @train.last
// CHECK: fsdp.carry_store %[[SUM:.*]], @[[PLACE:.*accumulator]]
// CHECK: %[[REDUCED:.*]] = fsdp.all_reduce sum %[[SUM]]
// CHECK: fsdp.carry_store %[[REDUCED]], @[[PLACE]]
// CHECK: fsdp.segment @train.update
// CHECK: fsdp.carry_load @[[PLACE]]

// PLANNED: %[[SUM:.*]] = fsdp.buffer "{{.*}}.accumulator" persistent
// PLANNED: fsdp.segment @train.last
// PLANNED: fsdp.launch "{{.*}}all_reduce" on "reduce" {{.*}}ins(%[[SUM]] : {{.*}}outs(%[[SUM]] :

// Without accumulation the planner gives both the same bytes.
// WHOLE-DAG: fsdp.buffer "[[GRADIENT:layer.*flatten]]"{{.*}} offset [[OFFSET:[0-9]+]] :
// WHOLE-DAG: fsdp.buffer "{{layer.*}}all_reduce"{{.*}} offset [[OFFSET]] :

// SHARDS: %[[SHARD:.*]] = fsdp.buffer "{{.*}}.reduced" persistent
// SHARDS: fsdp.segment @train.last
// SHARDS: fsdp.launch "{{.*}}reduce_scatter" on "reduce" {{.*}}outs(%[[SHARD]] :
// SHARDS: fsdp.launch "{{.*}}all_reduce" on "reduce" {{.*}}ins(%[[SHARD]] : {{.*}}outs(%[[SHARD]] :
