// RUN: split-file %s %t
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=zero1 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=zero2 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=shard 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=fsdp:never 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=*:0,w:flat 2>&1 | FileCheck %s --check-prefix=ODDS
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=min-shard-size=0x10 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=hsdp 2>&1 | FileCheck %s --check-prefix=HSDP
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=nothing*:flat 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=weight 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=*:rows 2>&1 | FileCheck %s --check-prefix=SPEC
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=[:flat" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=*:1 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not fsdp-opt %t/no-axis.mlir --fsdp-shard-parameters=shard=*:flat 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not fsdp-opt %t/no-mesh.mlir --fsdp-shard-parameters 2>&1 | FileCheck %s --check-prefix=MESH

//--- model.mlir
// ZERO: error: strategy 'zero{{[12]}}' shards gradients and optimizer state differently from parameters, which is not available yet; use fsdp, hsdp or ddp
// UNKNOWN: error: unknown strategy 'shard', expected fsdp, hsdp or ddp
// NEVER: error: unknown strategy 'fsdp:never', expected fsdp, hsdp or ddp
// ODDS: error: 'fsdp.param' op 'w' is matched by '*:0' and by 'w:flat', which differ; give each parameter one storage, with patterns that do not overlap
// SIZE: got '0x10', expected an integer from 0 to 9223372036854775807
// HSDP: error: strategy 'hsdp' shards over axis 'fsdp' and replicates over axis 'data', got mesh #fsdp.mesh<["fsdp"=4]>; give it both axes
// NOTHING: error: option 'shard' got 'nothing*:flat', whose pattern matches no parameter
// NOTHING: note: there is 'w'
// FORM: error: option 'shard' got 'weight', expected PATTERN:SPEC
// SPEC: error: option 'shard' got '*:rows', expected flat, replicated or the number of a dimension after ':'
// GLOB: error: option 'shard' got '[:flat', whose pattern is malformed
// DIM: error: 'fsdp.param' op of type 'tensor<8xf32>' is to be split along dimension 1 by '*:1', expected a dimension below 1
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>

//--- no-axis.mlir
// AXIS: error: 'fsdp.param' op is to be sharded by '*:flat', but the mesh has no axis 'fsdp'
fsdp.mesh @mesh <["data"=4]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>

//--- no-mesh.mlir
// MESH: error: module has parameters but no mesh to store them on; declare one, for one rank 'fsdp.mesh @mesh <["fsdp"=1]>'
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
