// RUN: fsdp-opt %s | FileCheck %s
// RUN: fsdp-opt %s | FileCheck %s --check-prefix=TWO
// RUN: fsdp-opt %s > %t && diff %t %s
// A comment that speaks of a CHECK line is none.
// NOTE: this is prose.
// CHECK-LABEL: @f
// CHECK-COUNT-2: add
// CHECK-NOT: mul
// TWO-DAG: add
