// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @write_rows
func.func @write_rows(%table: tensor<2x4x16x8xf32>, %rows: tensor<2x4x3x8xf32>, %at: tensor<2x3xi32>,
                      %list: tensor<2x16xbf16>, %items: tensor<2x3xbf16>) {
  // CHECK: nn.write_rows %{{.*}}, %{{.*}}, %{{.*}} dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x3xi32>
  %0 = nn.write_rows %table, %rows, %at dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x3xi32>
  // The result has the type of the table.
  // CHECK: nn.write_rows %{{.*}}, %{{.*}}, %{{.*}} dim 1 : tensor<2x16xbf16>, tensor<2x3xbf16>, tensor<2x3xi32>
  %1 = nn.write_rows %list, %items, %at dim 1 : tensor<2x16xbf16>, tensor<2x3xbf16>, tensor<2x3xi32>
  %2 = arith.addf %1, %list : tensor<2x16xbf16>
  return
}

// CHECK-LABEL: func.func @cached_attention
func.func @cached_attention(%q: tensor<2x3x12x8xf32>, %turned: tensor<2x12x3x8xf32>, %k: tensor<2x4x16x8xf32>,
                            %at: tensor<2x3xi32>) {
  // CHECK: nn.cached_attention "b t h d" %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %at scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  // CHECK: nn.cached_attention "b h t d" %{{.*}} scale 1.000000e+00 window 5 softcap 5.000000e+01 : tensor<2x12x3x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  %1 = nn.cached_attention "b h t d" %turned, %k, %k, %at scale 1.0 window 5 softcap 50.0 : tensor<2x12x3x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  // CHECK: nn.cached_attention "b h t d" %{{.*}} scale 1.000000e+00 softcap 5.000000e-01 :
  %2 = nn.cached_attention "b h t d" %turned, %k, %k, %at scale 1.0 softcap 0.5 : tensor<2x12x3x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<2x3x12x8xf32>, %turned: tensor<2x12x3x8xbf16>, %at: tensor<2x3xi32>) {
  // CHECK: nn.rope %{{.*}} at %{{.*}} : tensor<2x3xi32> dim 1 theta 1.000000e+04 : tensor<2x3x12x8xf32>
  %0 = nn.rope %x at %at : tensor<2x3xi32> dim 1 theta 1.0e+04 : tensor<2x3x12x8xf32>
  // CHECK: nn.rope %{{.*}} at %{{.*}} : tensor<2x3xi32> dim 2 theta 1.000000e+04 factor 4.000000e+00 ramp index from 2.000000e+00 to 5.000000e-01 magnitude 1.200000e+00 inverse : tensor<2x12x3x8xbf16>
  %1 = nn.rope %turned at %at : tensor<2x3xi32> dim 2 theta 1.0e+04 factor 4.0 ramp index from 2.0 to 0.5 magnitude 1.2 inverse : tensor<2x12x3x8xbf16>
  return
}
