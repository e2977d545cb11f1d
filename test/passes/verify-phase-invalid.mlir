// RUN: split-file %s %t
// RUN: not fsdp-opt %t/load.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=LOAD
// RUN: not fsdp-opt %t/step.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: not fsdp-opt %t/loose.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=LOOSE
// RUN: not fsdp-opt %t/places.mlir --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=PLACES
// RUN: sed 's/over \["fsdp"\]/over ["context"]/' %t/places.mlir | not fsdp-opt --fsdp-verify-phase 2>&1 | FileCheck %s --check-prefix=AXIS

//--- load.mlir
// LOAD: error: 'fsdp.load' op belongs to the local phase, but the module is in the scheduled phase
module attributes {fsdp.phase = "scheduled"} {
  fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %p = fsdp.load @s "parameter" : tensor<4xf32>
    }
  }
}

//--- step.mlir
// STEP: error: 'fsdp.step' op belongs to the global phase, but the module is in the scheduled phase
module attributes {fsdp.phase = "scheduled"} {
  fsdp.step @evaluate evaluate {
  }
}

//--- loose.mlir
// LOOSE: error: 'arith.constant' op is outside 'fsdp.launch' in the scheduled phase; put it into a launch
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0> : tensor<4xf32>
    }
  }
}

//--- places.mlir
// PLACES: error: 'nn.attention' op has 3 places, expected one for each of 2 ranks
// AXIS: error: 'nn.attention' op has queries over 'context', expected an axis of the module's mesh
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0> : tensor<1x1x4x2xf32>
      %y:2 = nn.attention %x, %x, %x scale 1.0 causal at [0, 4, 8] over ["fsdp"] : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4xf32>)
    }
  }
}
