// A carried tensor contains nothing before something is stored in it.
// RUN: not fsdp-run %s 2>&1 | FileCheck %s
// CHECK: error: 'fsdp.carry_load' op loads 'sum' before a value is stored in it
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.carried @sum : tensor<f32>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %old = fsdp.carry_load @sum : tensor<f32>
      %new = arith.addf %old, %old : tensor<f32>
      fsdp.carry_store %new, @sum : tensor<f32>
    }
  }
}
