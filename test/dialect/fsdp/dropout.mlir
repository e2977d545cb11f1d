// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

fsdp.mesh @mesh <["data"=2, "fsdp"=4]>

// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<8x4xf32>, %scalar: tensor<f64>, %empty: tensor<0x3xbf16>) {
  // CHECK: fsdp.dropout %{{.*}} rate 1.000000e-01 name "h.0.drop" : tensor<8x4xf32>
  %0 = fsdp.dropout %x rate 0.1 name "h.0.drop" : tensor<8x4xf32>
  // CHECK: fsdp.dropout %{{.*}} rate 0.000000e+00 name "s" : tensor<f64>
  %1 = fsdp.dropout %scalar rate 0.0 name "s" : tensor<f64>
  // CHECK: fsdp.dropout %{{.*}} rate 5.000000e-01 name "e" : tensor<0x3xbf16>
  %2 = fsdp.dropout %empty rate 0.5 name "e" : tensor<0x3xbf16>
  return
}

// CHECK-LABEL: func.func @part
func.func @part(%x: tensor<3x4xf32>) {
  // Ten rows over four ranks, seven columns over two.
  // CHECK: fsdp.dropout %{{.*}} rate 2.500000e-01 name "d" part_of [10, 7] over {{\[\[}}"fsdp"], ["data"]] : tensor<3x4xf32>
  %0 = fsdp.dropout %x rate 0.25 name "d" part_of [10, 7] over [["fsdp"], ["data"]] : tensor<3x4xf32>
  // CHECK: fsdp.dropout %{{.*}} part_of [20, 4] over {{\[\[}}"data", "fsdp"], []] : tensor<3x4xf32>
  %1 = fsdp.dropout %x rate 0.25 name "d" part_of [20, 4] over [["data", "fsdp"], []] : tensor<3x4xf32>
  return
}

// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<2x7xf32>) {
  // CHECK: fsdp.dropout %{{.*}} part_of [20, 7] over {{\[\[}}"fsdp"], []] microbatches 3 along 0 : tensor<2x7xf32>
  %0 = fsdp.dropout %x rate 0.25 name "d" part_of [20, 7] over [["fsdp"], []] microbatches 3 along 0 : tensor<2x7xf32>
  // CHECK: fsdp.dropout %{{.*}} part_of [20, 7] over {{\[\[}}"fsdp"], []] microbatches 3 along 0 at 2 : tensor<2x7xf32>
  %1 = fsdp.dropout %x rate 0.25 name "d" part_of [20, 7] over [["fsdp"], []] microbatches 3 along 0 at 2 : tensor<2x7xf32>
  return
}
