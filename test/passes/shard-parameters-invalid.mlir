// RUN: split-file %s %t
// RUN: not fsdp-opt %t/no-axis.mlir --fsdp-shard-parameters=strategy=zero1 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %t/no-axis.mlir --fsdp-shard-parameters=strategy=zero2 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=shard 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=fsdp:never 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=*:0;w:flat" 2>&1 | FileCheck %s --check-prefix=ODDS
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=min-shard-size=0x10 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=strategy=hsdp 2>&1 | FileCheck %s --check-prefix=HSDP
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=nothing*:flat 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=weight 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=*:flat+rows 2>&1 | FileCheck %s --check-prefix=SPEC
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=*:flat(fsdp+fsdp)" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=*:flat(node)" 2>&1 | FileCheck %s --check-prefix=STORED
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=*:tensor" 2>&1 | FileCheck %s --check-prefix=TENSOR
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=*:_,_@flat" 2>&1 | FileCheck %s --check-prefix=ENTRIES
// RUN: not fsdp-opt %t/matrix.mlir "--fsdp-shard-parameters=shard=*:fsdp" 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=*:fsdp" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not fsdp-opt %t/model.mlir "--fsdp-shard-parameters=shard=[:flat" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard-parameters=shard=*:1 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not fsdp-opt %t/no-axis.mlir --fsdp-shard-parameters=shard=*:flat 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not fsdp-opt %t/parts.mlir "--fsdp-shard-parameters=shard=*:tensor:(1)4" 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not fsdp-opt %t/parts.mlir "--fsdp-shard-parameters=shard=w:tensor:(1)2;v:tensor:(1)3" 2>&1 | FileCheck %s --check-prefix=CUTS
// RUN: not fsdp-opt %t/parts.mlir "--fsdp-shard-parameters=shard=*:node:(1)2" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fsdp-opt %t/parts.mlir "--fsdp-shard-parameters=shard=*:tensor:(1)4+tensor:(2)2" 2>&1 | FileCheck %s --check-prefix=OVERLAP
// RUN: not fsdp-opt %t/parts.mlir --fsdp-shard-parameters "--fsdp-reshard-after-forward=when=axes:fsdp:(1)3" 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: not fsdp-opt %t/named.mlir --fsdp-shard-parameters 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: not fsdp-opt %t/no-mesh.mlir --fsdp-shard-parameters 2>&1 | FileCheck %s --check-prefix=MESH

//--- model.mlir
// ZERO: error: strategy 'zero{{[12]}}' shards over axis 'fsdp', got mesh data=4; give it that axis, or use ddp
// UNKNOWN: error: unknown strategy 'shard', expected ddp, zero1, zero2, fsdp or hsdp
// NEVER: error: unknown strategy 'fsdp:never', expected ddp, zero1, zero2, fsdp or hsdp
// ODDS: error: 'fsdp.param' op 'w' is matched by '*:0' and by 'w:flat', which differ; give each parameter one storage, with patterns that do not overlap
// SIZE: got '0x10', expected an integer from 0 to 9223372036854775807
// HSDP: error: strategy 'hsdp' shards over axis 'fsdp' and replicates the shards over another axis, got mesh fsdp=4; give it both, as in data=2,fsdp=4, or use fsdp
// NOTHING: error: --shard got 'nothing*:flat', whose pattern matches no parameter
// NOTHING: note: the module has parameter 'w'
// FORM: error: --shard got 'weight', expected PATTERN:SPEC
// SPEC: error: --shard got '*:flat+rows', expected flat, replicated or a dimension, each with axes as in flat(fsdp+node) if wanted, or an axis or _ for each dimension as in _,tensor or _,tensor@flat after ':'
// TWICE: error: --shard got '*:flat(fsdp+fsdp)', expected flat
// STORED: error: 'fsdp.param' op is to be sharded by '*:flat(node)', but the mesh has no axis 'node'
// TENSOR: error: 'fsdp.param' op is to be split by '*:tensor', but the mesh has no axis 'tensor'
// ENTRIES: error: 'fsdp.param' op of type 'tensor<8xf32>' is to be split by '*:_,_@flat', which has 2 entries, expected 1, one for each dimension
// BOTH: error: 'fsdp.param' op is to be split by '*:fsdp': axis "fsdp" splits the parameter both in compute and in storage; use it for one of them
// GLOB: error: --shard got '[:flat', whose pattern is malformed
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

//--- matrix.mlir
// ENTRY: error: 'fsdp.param' op of type 'tensor<8x2xf32>' is to be split by '*:fsdp', which has 1 entry, expected 2, one for each dimension
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<8x2xf32> unit "u" init <constant, 0.0>

//--- parts.mlir
// PART: error: --shard got '*:tensor:(1)4', which names 'tensor:(1)4', which splits axis 'tensor' of size 6 after 4 positions, expected a divisor of the size
// CUTS: error: --shard got 'v:tensor:(1)3', which names 'tensor:(1)3', which splits axis 'tensor' of size 6 after 3 positions, and another part splits it after 2; use parts whose positions divide one another
// ABSENT: error: 'fsdp.param' op is to be split by '*:node:(1)2', but the mesh has no axis 'node'
// OVERLAP: error: --shard got '*:tensor:(1)4+tensor:(2)2', expected flat
// KEPT: error: --reshard-after-forward got 'axes:fsdp:(1)3', which names 'fsdp:(1)3', which splits axis 'fsdp' of size 4 after 3 positions, expected a divisor of the size
fsdp.mesh @mesh <["fsdp"=4, "tensor"=6]>
fsdp.param @w : tensor<12xf32> unit "u" init <constant, 0.0>
fsdp.param @v : tensor<12xf32> unit "v" init <constant, 0.0>

//--- named.mlir
// NAMED: error: 'fsdp.param' op names 'tensor:(1)2', which splits axis 'tensor' of size 6 after 2 positions, and another part splits it after 3
fsdp.mesh @mesh <["fsdp"=4, "tensor"=6]>
fsdp.param @w : tensor<12xf32> unit "u" init <constant, 0.0> split [["tensor:(1)3"]]
fsdp.param @v : tensor<12xf32> unit "v" init <constant, 0.0> split [["tensor:(1)2"]]
