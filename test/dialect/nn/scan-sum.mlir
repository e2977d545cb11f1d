// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @scan_sum
func.func @scan_sum(%x: tensor<8x16x4xf32>, %n: tensor<5xbf16>, %e: tensor<0x3xf64>) {
  // CHECK: nn.scan_sum "b s d" along "s" %{{.*}} : tensor<8x16x4xf32>
  %0 = nn.scan_sum "b s d" along "s" %x : tensor<8x16x4xf32>
  // CHECK: nn.scan_sum "b s d" along "d" %{{.*}} exclusive : tensor<8x16x4xf32>
  %1 = nn.scan_sum "b s d" along "d" %0 exclusive : tensor<8x16x4xf32>
  // CHECK: nn.scan_sum "time" along "time" %{{.*}} exclusive reverse : tensor<5xbf16>
  %2 = nn.scan_sum "time" along "time" %n exclusive reverse : tensor<5xbf16>
  // CHECK: nn.scan_sum "a b2" along "a" %{{.*}} reverse : tensor<0x3xf64>
  %3 = nn.scan_sum "a b2" along "a" %e reverse : tensor<0x3xf64>
  return
}
