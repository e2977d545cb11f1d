// --emit=global ends with gradients and updates in the step, and a step that evaluates.
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global | FileCheck %s
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global | fsdp-opt --fsdp-verify-phase | FileCheck %s
// RUN: fsdpc - --emit=global < %S/Inputs/regression.mlir | FileCheck %s
// CHECK: fsdp.mesh @mesh <["fsdp"=1]>
// CHECK: fsdp.step @train train
// CHECK-NOT: fsdp.loss
// CHECK: fsdp.output "loss"
// CHECK: fsdp.update @bias
// CHECK: fsdp.update @kernel
// CHECK: fsdp.advance
// CHECK: fsdp.step @evaluate evaluate
// CHECK-NOT: fsdp.update

// With -o the same text goes to a file, which is replaced.
// RUN: rm -rf %t && mkdir %t && echo old > %t/global.mlir
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global -o %t/global.mlir | count 0
// RUN: FileCheck %s < %t/global.mlir
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global | diff - %t/global.mlir

// What is no regular file is written to, not replaced.
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global -o /dev/null
// RUN: test -c /dev/null
// RUN: ln -s global.mlir %t/link.mlir
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global -o %t/link.mlir
// RUN: test -L %t/link.mlir
