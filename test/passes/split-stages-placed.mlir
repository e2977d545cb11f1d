// An op that takes a value of backward is computed where that value is, whatever the stage of its structure, and has that stage from
// there on: a kernel that joins it, and the order of microbatches, keep it on the rank.
// RUN: fsdp-opt --fsdp-split-stages %s | FileCheck %s
// CHECK-LABEL: fsdp.program @pipeline0
// CHECK: math.cos %{{.*}} {fsdp.structure = #fsdp.structure<"a" backward>}
// CHECK: math.tan %{{.*}} {fsdp.structure = #fsdp.structure<"b" backward>}
// CHECK-NEXT: fsdp.carry_store %{{.*}}, @sum {fsdp.structure = #fsdp.structure<"b" backward>}
// CHECK-LABEL: fsdp.program @pipeline1
// CHECK: math.sin %{{.*}} {fsdp.structure = #fsdp.structure<"b" backward stage 1>}
// CHECK-NOT: math.tan
module attributes {fsdp.phase = "local", fsdp.stages = 2 : i64} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.carried @sum : tensor<3xf32>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0> : tensor<3xf32>
      %a = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<3xf32>
      %b = math.exp %a {fsdp.structure = #fsdp.structure<"b" stage 1>} : tensor<3xf32>
      %c = math.sin %b {fsdp.structure = #fsdp.structure<"b" backward stage 1>} : tensor<3xf32>
      %d = math.cos %c {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<3xf32>
      %e = math.tan %d {fsdp.structure = #fsdp.structure<"b" backward stage 1>} : tensor<3xf32>
      fsdp.carry_store %e, @sum {fsdp.structure = #fsdp.structure<"b" backward stage 1>} : tensor<3xf32>
    }
  }
}
