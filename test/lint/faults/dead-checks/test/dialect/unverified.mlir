// RUN: not fsdp-opt %s 2>&1 | FileCheck %s
// CHECK: error
// expected-error@+1 {{never looked at}}
