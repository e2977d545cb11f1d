// RUN: fsdp-opt %s --canonicalize | FileCheck %s

// Constants stay inside the step or segment that uses them: each is a program of its own.
// CHECK: module {
// CHECK-NEXT: fsdp.step @evaluate{{ *}}evaluate {
// CHECK-NEXT: arith.constant dense<2.000000e+00> : tensor<f32>
fsdp.step @evaluate evaluate {
  %one = arith.constant dense<1.0> : tensor<f32>
  %two = arith.addf %one, %one : tensor<f32>
  fsdp.output "two" %two
}
// CHECK: fsdp.program @all
// CHECK-NEXT: fsdp.segment @evaluate
// CHECK-NEXT: arith.constant dense<2.000000e+00> : tensor<f32>
fsdp.program @all role {} {
  fsdp.segment @evaluate evaluate next [@evaluate] {
    %one = arith.constant dense<1.0> : tensor<f32>
    %two = arith.addf %one, %one : tensor<f32>
    fsdp.output "two" %two
  }
}
