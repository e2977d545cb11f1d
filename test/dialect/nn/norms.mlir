// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<8x16x32xf32>, %s: tensor<32xf32>, %row: tensor<4xbf16>) {
  // CHECK: nn.softmax %{{.*}} : tensor<4xbf16>
  %0 = nn.softmax %row : tensor<4xbf16>
  // CHECK: %{{.*}}, %[[MEAN:.*]], %[[RSTD:.*]] = nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps 1.000000e-05 : tensor<8x16x32xf32>, tensor<32xf32> -> tensor<8x16xf32>
  %y, %mean, %rstd = nn.layer_norm %x, %s, %s eps 1.0e-05 : tensor<8x16x32xf32>, tensor<32xf32> -> tensor<8x16xf32>
  // CHECK: nn.layer_norm_grad %{{.*}}, %{{.*}}, %[[MEAN]], %[[RSTD]], %{{.*}} : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32>
  %1:3 = nn.layer_norm_grad %x, %s, %mean, %rstd, %y : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32>
  // With a residual, and sums over rows.
  // CHECK: nn.layer_norm_grad %{{.*}}, %{{.*}}, %[[MEAN]], %[[RSTD]], %{{.*}} plus %{{.*}} : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32>{{$}}
  %p:3 = nn.layer_norm_grad %x, %s, %mean, %rstd, %y plus %x : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32>
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = nn.layer_norm_grad %{{.*}} plus %{{.*}} : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32> sums tensor<32xf32>
  %q:4 = nn.layer_norm_grad %x, %s, %mean, %rstd, %y plus %x : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32> sums tensor<32xf32>
  // CHECK: %{{.*}}, %[[R:.*]] = nn.rms_norm %{{.*}}, %{{.*}} eps 9.9999999999999995E-7 : tensor<8x16x32xf32>, tensor<32xf32> -> tensor<8x16xf32>
  %z, %r = nn.rms_norm %x, %s eps 1.0e-06 : tensor<8x16x32xf32>, tensor<32xf32> -> tensor<8x16xf32>
  // CHECK: nn.rms_norm_grad %{{.*}}, %{{.*}}, %[[R]], %{{.*}} : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32>
  %2:2 = nn.rms_norm_grad %x, %s, %r, %z : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32>
  // CHECK: nn.rms_norm_grad %{{.*}}, %{{.*}}, %[[R]], %{{.*}} plus %{{.*}} : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32>{{$}}
  %t:2 = nn.rms_norm_grad %x, %s, %r, %z plus %x : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32>
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = nn.rms_norm_grad %{{.*}} plus %{{.*}} sums tensor<32xf32>
  %u:3 = nn.rms_norm_grad %x, %s, %r, %z plus %x : tensor<8x16x32xf32>, tensor<32xf32>, tensor<8x16xf32> plus tensor<8x16x32xf32> sums tensor<32xf32>
  // A row alone has a statistic of rank 0.
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} eps 1.250000e-01 : tensor<4xbf16>, tensor<4xbf16> -> tensor<f32>
  %3:2 = nn.rms_norm %row, %row eps 0.125 : tensor<4xbf16>, tensor<4xbf16> -> tensor<f32>
  // Statistics of 16-bit rows are f32, and so are sums over rows.
  // CHECK: %{{.*}}, %[[D:.*]] = nn.rms_norm_grad %{{.*}} : tensor<4xbf16>, tensor<4xbf16>, tensor<f32>
  // CHECK-NEXT: arith.addf %[[D]], %[[D]] : tensor<4xf32>
  %4:2 = nn.rms_norm_grad %row, %row, %3#1, %row : tensor<4xbf16>, tensor<4xbf16>, tensor<f32>
  %5 = arith.addf %4#1, %4#1 : tensor<4xf32>
  return
}
