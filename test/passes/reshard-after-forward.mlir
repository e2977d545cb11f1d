// Every placement takes what the option says, those of the model too.
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-reshard-after-forward=when=never --fsdp-reshard-after-forward=when=always | FileCheck %s --check-prefix=ALWAYS
// RUN: not fsdp-opt %s --fsdp-reshard-after-forward 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not fsdp-opt %s --fsdp-reshard-after-forward=when=sometimes 2>&1 | FileCheck %s --check-prefix=WORD

// NEVER: @given {{.*}}placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = never>
// NEVER: @free {{.*}}placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = never>
// ALWAYS: @given {{.*}}placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// ALWAYS: @free {{.*}}placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// EARLY: error: 'fsdp.param' op 'free' has no placement yet; run --fsdp-shard-parameters first
// WORD: Cannot find option named 'sometimes'!
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @given : tensor<8xf32> unit "u" init <constant, 0.0> placement <dimension 0 over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @free : tensor<8xf32> unit "u" init <constant, 0.0>
