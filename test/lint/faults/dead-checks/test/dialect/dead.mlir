// RUN: fsdp-opt %s | FileCheck %s
// RUN fsdp-opt %s --cse | FileCheck %s

// CHECK-LABEL: @alive
// CHECK add
// CHECK-NEXT add
// CHECK-NXT: add
// LOCAL: add
// CHECK: add
