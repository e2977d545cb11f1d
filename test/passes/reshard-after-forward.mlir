// Every placement takes what the option says, those of the model too.
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never --fsdp-reshard-after-forward=when=always | FileCheck %s --check-prefix=ALWAYS
// RUN: not fsdp-opt %s --fsdp-reshard-after-forward 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: fsdp-opt %s --fsdp-shard-parameters="shard=*:flat(fsdp+node)" --fsdp-reshard-after-forward=when=axes:fsdp | FileCheck %s --check-prefix=PART
// RUN: fsdp-opt %s --fsdp-shard-parameters="shard=*:flat(fsdp+node)" --fsdp-reshard-after-forward=when=axes:node | FileCheck %s --check-prefix=LAST
// RUN: fsdp-opt %s --fsdp-shard-parameters="shard=*:flat(fsdp+node)" --fsdp-reshard-after-forward=when=axes:node+fsdp | FileCheck %s --check-prefix=BOTH
// RUN: not fsdp-opt %s --fsdp-shard-parameters="shard=*:flat(fsdp)" --fsdp-reshard-after-forward=when=axes:node 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: fsdp-opt %s --fsdp-shard-parameters="shard=*:0(fsdp+node)" --fsdp-reshard-after-forward=when=axes:node | FileCheck %s --check-prefix=DIMENSION
// RUN: fsdp-opt %s --fsdp-shard-parameters="strategy=zero1 shard=*:flat" --fsdp-reshard-after-forward=when=axes:fsdp | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %s --fsdp-shard-parameters="strategy=zero1 shard=*:flat" --fsdp-reshard-after-forward=when=axes:fsdp+nosuch 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fsdp-opt %s --fsdp-reshard-after-forward=when=sometimes 2>&1 | FileCheck %s --check-prefix=WORD

// NEVER: @given {{.*}}placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = never>
// NEVER: @free {{.*}}placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = never>
// ALWAYS: @given {{.*}}placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// ALWAYS: @free {{.*}}placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// EARLY: error: 'fsdp.param' op 'free' has no placement yet; run --fsdp-shard-parameters first
// WORD: error: --reshard-after-forward got 'sometimes', expected always, never or axes:A+B with names of different mesh axes
// PART: @given {{.*}}placement <flat over ["fsdp", "node"], gather = f32, reduce = f32, reshard = axes ["fsdp"]>
// PART: @free {{.*}}placement <flat over ["fsdp", "node"], {{.*}}reshard = axes ["fsdp"]>
// It is stored over the axes first that it stays split over.
// LAST: @given {{.*}}placement <flat over ["node", "fsdp"], gather = f32, reduce = f32, reshard = axes ["node"]>
// LAST: @free {{.*}}placement <flat over ["node", "fsdp"], {{.*}}reshard = axes ["node"]>
// What is split over all of them is what is stored.
// BOTH: @given {{.*}}placement <flat over ["fsdp", "node"], gather = f32, reduce = f32, reshard = always>
// OTHER: error: 'fsdp.param' op 'given' is stored as flat(fsdp), but --reshard-after-forward got 'axes:node', expected axes of its storage, such as axes:fsdp
// DIMENSION: @given {{.*}}placement <dimension 0 over ["node", "fsdp"], gather = f32, reduce = f32, reshard = axes ["node"]>
// ZERO: @free {{.*}}placement <parameter replicated, {{.*}}reshard = always>
// UNKNOWN: error: --reshard-after-forward got 'axes:fsdp+nosuch', expected axes of the mesh: node, fsdp
fsdp.mesh @mesh <["node"=2, "fsdp"=4]>
fsdp.param @given : tensor<8xf32> unit "u" init <constant, 0.0> placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @free : tensor<8xf32> unit "u" init <constant, 0.0>
