// RUN: fsdp-opt %s | FileCheck %s --check-prefixes=ONE,TWO
// ONE: add
// CHECK: add
