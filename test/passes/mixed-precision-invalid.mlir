// RUN: split-file %s %t
// RUN: not fsdp-opt %t/option.mlir --fsdp-mixed-precision="compute=f16" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not fsdp-opt %t/option.mlir --fsdp-mixed-precision="reduce=f64" 2>&1 | FileCheck %s --check-prefix=WIRE
// RUN: not fsdp-opt %t/placement.mlir --fsdp-mixed-precision 2>&1 | FileCheck %s --check-prefix=PLACEMENT
// RUN: not fsdp-opt %t/stored.mlir --fsdp-mixed-precision 2>&1 | FileCheck %s --check-prefix=STORED
// RUN: not fsdp-opt %t/late.mlir --fsdp-mixed-precision 2>&1 | FileCheck %s --check-prefix=LATE

//--- option.mlir
// OPTION: error: option 'compute' got 'f16', expected f32 or bf16
// WIRE: error: option 'reduce' got 'f64', expected f32 or bf16

//--- placement.mlir
// PLACEMENT: error: 'fsdp.param' op has no placement to hold its precision; run --fsdp-shard-parameters first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>

//--- stored.mlir
// STORED: error: 'fsdp.param' op of type 'tensor<8xf64>' is trained in another precision than its own, expected element type f32
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf64> unit "u" init <constant, 0.0> placement <replicated, gather = f64, reduce = f64, reshard = always>

//--- late.mlir
// LATE: error: 'fsdp.gradient' op has no precision; run --fsdp-mixed-precision before --fsdp-differentiate
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<3xf32> unit "u" init <constant, 0.0> placement <replicated, gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<3xf32>
  fsdp.gradient @w, %g : tensor<3xf32>
}
