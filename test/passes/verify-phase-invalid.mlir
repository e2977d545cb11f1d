// RUN: split-file %s %t
// RUN: not fsdp-opt %t/gather.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=GATHER
// RUN: not fsdp-opt %t/step.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: not fsdp-opt %t/loose.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=LOOSE

//--- gather.mlir
// GATHER: error: 'fsdp.all_gather' op belongs to the local or scheduled phase, but the module is in the global phase
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %g = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
}

//--- step.mlir
// STEP: error: 'fsdp.step' op belongs to the global phase, but the module is in the scheduled phase
module attributes {fsdp.phase = "scheduled"} {
  fsdp.step @evaluate evaluate {
  }
}

//--- loose.mlir
// LOOSE: error: 'arith.constant' op computes outside a launch in the scheduled phase
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0> : tensor<4xf32>
    }
  }
}
