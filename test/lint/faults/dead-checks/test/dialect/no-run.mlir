// CHECK: add
