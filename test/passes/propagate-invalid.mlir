// RUN: split-file %s %t
// RUN: not fsdp-opt %t/rule.mlir --fsdp-propagate 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not fsdp-opt %t/region.mlir --fsdp-propagate 2>&1 | FileCheck %s --check-prefix=REGION
// RUN: not fsdp-opt %t/checkpoint.mlir --fsdp-propagate 2>&1 | FileCheck %s --check-prefix=CHECKPOINT
// RUN: not fsdp-opt %t/mesh.mlir --fsdp-propagate 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: not fsdp-opt %t/mesh.mlir --fsdp-propagate=accumulate=2 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: bash -c 'for count in -3 0 1048577 02; do fsdp-opt %t/mesh.mlir --fsdp-propagate=accumulate=$count 2>&1; fsdp-opt %t/mesh.mlir --fsdp-to-local=accumulate=$count 2>&1; done; true' | FileCheck %s --check-prefix=ACCUMULATE
// RUN: not fsdp-opt %t/dynamic.mlir --fsdp-propagate 2>&1 | FileCheck %s --check-prefix=DYNAMIC

//--- rule.mlir
// RULE: error: 'math.cbrt' op has no sharding rule, so its tensors cannot be split; use ops that have one
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %y = math.cbrt %x : tensor<8xf32>
}

//--- checkpoint.mlir
// CHECKPOINT: error: 'fsdp.checkpoint' op must be lowered before --fsdp-propagate; run --fsdp-differentiate first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  fsdp.checkpoint full {
  }
}

//--- region.mlir
// REGION: error: 'nn.fused' op has a region, which propagation does not support; run --fsdp-propagate before --fsdp-fuse
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %y = nn.fused %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    nn.yield %a : tensor<8xf32>
  }
}

//--- mesh.mlir
// ACCUMULATE-COUNT-2: for the --accumulate option: got '-3', expected an integer from 1 to 1048576
// ACCUMULATE-COUNT-2: for the --accumulate option: got '0', expected an integer from 1 to 1048576
// ACCUMULATE-COUNT-2: for the --accumulate option: got '1048577', expected an integer from 1 to 1048576
// ACCUMULATE-COUNT-2: for the --accumulate option: got '02', expected an integer from 1 to 1048576
// MESH: error: 'fsdp.step' op is in a module without a mesh; declare one, for one rank 'fsdp.mesh @mesh <["fsdp"=1]>'
fsdp.step @evaluate evaluate {
}

//--- dynamic.mlir
// DYNAMIC: error: 'arith.constant' op has result type 'f32', expected a ranked tensor with static shape
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = arith.constant 1.0 : f32
}
