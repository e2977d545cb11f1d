// Ops of steps that generate text, in a step that evaluates: sizes and operands as the runtime has them.
// RUN: fsdp-opt %s --fsdp-to-scheduled -o %t
// RUN: fsdp-translate --fsdp-to-cpp %t | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t | FileCheck %s
// RUN: sed 's/x8xf32/x136xf32/g; s/<8xf32/<136xf32/g' %s | fsdp-opt --fsdp-to-scheduled -o %t.wide
// RUN: not fsdp-translate --fsdp-to-cuda %t.wide 2>&1 | FileCheck %s --check-prefix=WIDE

// WIDE: error: got heads of width 136, expected at most 128 for the attention kernels of --target=cuda; use more heads, which are narrower, or --target=cpu

// CHECK: rope(c, kCompute, "rope",
// CHECK-NEXT: RopeShape{/*blocks=*/3, /*positions=*/2, /*inner=*/4, /*width=*/8, /*theta=*/1e+04,
// CHECK-NEXT: /*inverse=*/false, /*magnitude=*/1.0, /*factor=*/1.0, /*ramp=*/RopeRamp::None, /*from=*/0.0,
// CHECK-NEXT: /*to=*/0.0, /*repeats=*/1}, arena::rms_norm, arena::input_at, arena::rope);
// CHECK: rope(c, kCompute, "rope 2",
// CHECK-NEXT: RopeShape{/*blocks=*/6, /*positions=*/2, /*inner=*/1, /*width=*/8, /*theta=*/1e+04,
// CHECK-NEXT: /*inverse=*/true, /*magnitude=*/1.25, /*factor=*/4.0, /*ramp=*/RopeRamp::Index, /*from=*/2.0,
// CHECK-NEXT: /*to=*/0.5, /*repeats=*/2}, arena::input_new, arena::input_at, arena::rope_2);
// CHECK: write_rows(c, kCompute, "write_rows",
// CHECK-NEXT: WriteShape{/*samples=*/3, /*outer=*/2, /*positions=*/16, /*rows=*/2, /*width=*/8},
// CHECK-NEXT: arena::input_kept, arena::rope_2, arena::input_at, arena::write_rows);
// A window of more keys than there are sees all of them.
// CHECK: cached_attention(c, kCompute, "cached_attention",
// CHECK-NEXT: CachedAttentionShape{/*batch=*/3, /*heads=*/4, /*groups=*/2, /*queries=*/2, /*keys=*/16,
// CHECK-NEXT: /*width=*/8, /*scale=*/0.5f, /*window=*/16, /*softcap=*/3e+01f, /*q=*/{64, 8, 32}},
// CHECK-NEXT: arena::rope, arena::write_rows, arena::input_kept, arena::input_at, arena::cached_attention);
// CHECK: cached_attention(c, kCompute, "cached_attention 2",
// CHECK-NEXT: CachedAttentionShape{/*batch=*/3, /*heads=*/4, /*groups=*/2, /*queries=*/2, /*keys=*/16,
// CHECK-NEXT: /*width=*/8, /*scale=*/0.5f, /*window=*/0, /*softcap=*/0.0f, /*q=*/{64, 16, 8}},
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "all" init <constant, 1.0>
fsdp.step @evaluate evaluate {
  %at = fsdp.input "at" sample_dim 0 : tensor<6x2xi32>
  %x = fsdp.input "x" sample_dim 0 : tensor<6x2x4x8xf32>
  %kept = fsdp.input "kept" sample_dim 0 : tensor<6x2x16x8xf32>
  %new = fsdp.input "new" sample_dim 0 : tensor<6x2x2x8xf32>
  %w = fsdp.read @w : tensor<8xf32>
  %h, %r = nn.rms_norm %x, %w eps 1.0e-06 : tensor<6x2x4x8xf32>, tensor<8xf32> -> tensor<6x2x4xf32>
  %q = nn.rope %h at %at : tensor<6x2xi32> dim 1 theta 1.0e+04 : tensor<6x2x4x8xf32>
  %row = nn.rope %new at %at : tensor<6x2xi32> dim 2 theta 1.0e+04 factor 4.0 ramp index from 2.0 to 0.5 magnitude 1.25 inverse : tensor<6x2x2x8xf32>
  %k = nn.write_rows %kept, %row, %at dim 2 : tensor<6x2x16x8xf32>, tensor<6x2x2x8xf32>, tensor<6x2xi32>
  %out = nn.cached_attention "b t h d" %q, %k, %kept, %at scale 0.5 window 100 softcap 30.0 : tensor<6x2x4x8xf32>, tensor<6x2x16x8xf32>, tensor<6x2xi32>
  %order = nn.rearrange "b t h d -> b h t d" %out : tensor<6x2x4x8xf32> -> tensor<6x4x2x8xf32>
  %again = nn.cached_attention "b h t d" %order, %k, %kept, %at scale 0.5 : tensor<6x4x2x8xf32>, tensor<6x2x16x8xf32>, tensor<6x2xi32>
  %sum = nn.reduce sum "b h t d ->" %again : tensor<6x4x2x8xf32> -> tensor<f64>
  %weight = arith.constant dense<6.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
