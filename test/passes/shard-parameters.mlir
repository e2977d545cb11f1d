// Strategies, threshold and patterns, on a mesh with two axes.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters | FileCheck %s --check-prefix=FSDP
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=hsdp | FileCheck %s --check-prefix=FSDP
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=ddp | FileCheck %s --check-prefix=DDP
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters=min-shard-size=64 | FileCheck %s --check-prefix=SMALL
// RUN: fsdp-opt %t/model.mlir --fsdp-shard-parameters="shard=fc1.*:1,fc2.*:replicated,*2.weight:replicated min-shard-size=1000" | FileCheck %s --check-prefix=PATTERN
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
fsdp.mesh @mesh <["data"=2, "fsdp"=4]>
fsdp.param @fc1.weight : tensor<8x16xf32> unit "fc1" init <normal, 2.0e-02>
fsdp.param @fc1.scale : tensor<3x21xf32> unit "fc1" init <constant, 0.0>
fsdp.param @fc2.weight : tensor<8x8xf32> unit "fc2" init <normal, 2.0e-02>

//--- given.mlir
// A placement that the model states stays.
// GIVEN: @a {{.*}} placement <dimension 0 over ["fsdp"], {{.*}}>
// GIVEN: @b {{.*}} placement <replicated
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @a : tensor<8xf32> unit "u" init <constant, 0.0> placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @b : tensor<8xf32> unit "u" init <constant, 0.0>

//--- no-axis.mlir
// NONE: remark: mesh #fsdp.mesh<["data"=2]> has no axis 'fsdp': every parameter is replicated
// NONE: @a {{.*}} placement <replicated
fsdp.mesh @mesh <["data"=2]>
fsdp.param @a : tensor<8xf32> unit "u" init <constant, 0.0>
