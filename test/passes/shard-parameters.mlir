// Strategies, threshold and patterns, on a mesh with two axes.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters | FileCheck %s --check-prefix=FSDP
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=hsdp | FileCheck %s --check-prefix=FSDP
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=ddp | FileCheck %s --check-prefix=DDP
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=min-shard-size=64 | FileCheck %s --check-prefix=SMALL
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters="shard=fc1.*:1;fc2.*:replicated;*2.weight:replicated min-shard-size=1000" | FileCheck %s --check-prefix=PATTERN
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=zero1 | FileCheck %s --check-prefix=ZERO1
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters="strategy=zero2 shard=fc1.scale:1;fc2.*:replicated" | FileCheck %s --check-prefix=ZERO2
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters="shard=fc1.*:flat(fsdp+data);fc2.weight:1(data)" | FileCheck %s --check-prefix=AXES
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters="strategy=ddp shard=fc2.weight:flat" | FileCheck %s --check-prefix=SPLIT
// RUN: fsdp-opt %t/compute.mlir --fsdp-shard-parameters="shard=w:_,tensor;b:tensor@replicated;e:data+tensor,_@flat" | FileCheck %s --check-prefix=COMPUTE
// RUN: fsdp-opt %t/given.mlir --fsdp-shard-parameters=strategy=ddp | FileCheck %s --check-prefix=GIVEN
// RUN: fsdp-opt %t/no-axis.mlir --fsdp-shard-parameters 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters | fsdp-opt | fsdp-opt | FileCheck %s --check-prefix=FSDP

//--- model.mlir
// FSDP: fsdp.param @fc1.weight {{.*}} placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// FSDP: fsdp.param @fc1.scale {{.*}} placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// FSDP: fsdp.param @fc2.weight {{.*}} placement <flat over ["fsdp"]

// DDP-COUNT-3: placement <replicated, gather
// NEVER-COUNT-3: placement <flat over ["fsdp"], {{.*}}reshard = never>

// The threshold is in elements, below it a parameter is replicated.
// SMALL: @fc1.weight {{.*}} placement <flat
// SMALL: @fc1.scale {{.*}} placement <replicated
// SMALL: @fc2.weight {{.*}} placement <flat

// A match wins over the threshold; patterns that agree on a parameter may overlap.
// PATTERN: @fc1.weight {{.*}} placement <dimension 1 over ["fsdp"]
// PATTERN: @fc1.scale {{.*}} placement <dimension 1 over ["fsdp"]
// PATTERN: @fc2.weight {{.*}} placement <replicated

// Under a strategy that splits some tensors a pattern says how those are stored, or that none is split.
// ZERO1-COUNT-3: placement <parameter replicated, gradient replicated, state flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// ZERO2: @fc1.weight {{.*}} placement <parameter replicated, gradient flat over ["fsdp"], state flat over ["fsdp"], gather
// ZERO2: @fc1.scale {{.*}} placement <parameter replicated, gradient dimension 1 over ["fsdp"], state dimension 1 over ["fsdp"], gather
// ZERO2: @fc2.weight {{.*}} placement <replicated, gather
// SPLIT-COUNT-2: placement <replicated
// SPLIT: placement <flat over ["fsdp"]
// AXES-COUNT-2: placement <flat over ["fsdp", "data"]
// AXES: placement <dimension 1 over ["data"]
fsdp.mesh @mesh <["data"=2, "fsdp"=4]>
fsdp.param @fc1.weight : tensor<8x16xf32> unit "fc1" init <normal, 2.0e-02>
fsdp.param @fc1.scale : tensor<3x21xf32> unit "fc1" init <constant, 0.0>
fsdp.param @fc2.weight : tensor<8x8xf32> unit "fc2" init <normal, 2.0e-02>

//--- compute.mlir
// The compute sharding stands beside the storage, which is the strategy's where none is given.
// COMPUTE: @w {{.*}} placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{}, {"tensor"}]>>
// COMPUTE: @b {{.*}} placement <replicated, {{.*}}compute = <@mesh, [{"tensor"}]>>
// COMPUTE: @e {{.*}} placement <flat over ["fsdp"], {{.*}}compute = <@mesh, [{"data", "tensor"}, {}]>>
fsdp.mesh @mesh <["data"=2, "fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<8x16xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<16xf32> unit "u" init <constant, 0.0>
fsdp.param @e : tensor<8x16xf32> unit "e" init <constant, 0.0>

//--- given.mlir
// A placement that the model states stays.
// GIVEN: @a {{.*}} placement <dimension 0 over ["fsdp"], {{.*}}>
// GIVEN: @b {{.*}} placement <replicated
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @a : tensor<8xf32> unit "u" init <constant, 0.0> placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @b : tensor<8xf32> unit "u" init <constant, 0.0>

//--- no-axis.mlir
// NONE: remark: mesh data=2 has no axis 'fsdp': every rank stores whole parameters{{$}}
// NONE: @a {{.*}} placement <replicated
fsdp.mesh @mesh <["data"=2]>
fsdp.param @a : tensor<8xf32> unit "u" init <constant, 0.0>
