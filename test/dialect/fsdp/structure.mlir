// The structure of ops and launches, printed and read again; what is meant without it is not printed.
// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s
//
// Ops of different structure are never merged; constants have none.
// RUN: fsdp-opt %s --cse --canonicalize | FileCheck %s --check-prefix=CLEAN

// CHECK-LABEL: fsdp.step @evaluate
// CHECK: %[[X:.*]] = fsdp.input "x" sample_dim 0 : tensor<4xf32>
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<"h.0">}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<"h.0" backward>}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<backward>}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<"h.0" backward recomputed stage 3>}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<backward recomputed>}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<"h.0" update stage 3>}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<stage 3>}
// CHECK: arith.negf %[[X]] {fsdp.structure = #fsdp.structure<"h.0">}
// CHECK: arith.negf %[[X]] : tensor<4xf32>
// CLEAN-LABEL: fsdp.step @evaluate
// CLEAN: dense<2.000000e+00>
// CLEAN-NOT: dense<2.000000e+00>
// CLEAN: arith.negf {{.*}}<"h.0">}
// CLEAN: arith.negf {{.*}}<"h.0" backward>}
// CLEAN: arith.negf {{.*}}<backward>}
// CLEAN: arith.negf {{.*}}<"h.0" backward recomputed stage 3>}
// CLEAN: arith.negf {{.*}}<backward recomputed>}
// CLEAN: arith.negf {{.*}}<"h.0" update stage 3>}
// CLEAN: arith.negf {{.*}}<stage 3>}
// CLEAN-NOT: "h.0">}
// CLEAN: arith.negf %{{.*}} : tensor<4xf32>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %c = arith.constant dense<2.0> : tensor<4xf32>
  %d = arith.constant dense<2.0> : tensor<4xf32>
  %0 = arith.negf %x {fsdp.structure = #fsdp.structure<"h.0">} : tensor<4xf32>
  %1 = arith.negf %x {fsdp.structure = #fsdp.structure<"h.0" backward>} : tensor<4xf32>
  %2 = arith.negf %x {fsdp.structure = #fsdp.structure<backward>} : tensor<4xf32>
  %7 = arith.negf %x {fsdp.structure = #fsdp.structure<"h.0" backward recomputed stage 3>} : tensor<4xf32>
  %8 = arith.negf %x {fsdp.structure = #fsdp.structure<backward recomputed>} : tensor<4xf32>
  %3 = arith.negf %x {fsdp.structure = #fsdp.structure<"h.0" update stage 3>} : tensor<4xf32>
  %4 = arith.negf %x {fsdp.structure = #fsdp.structure<forward stage 3>} : tensor<4xf32>
  %5 = arith.negf %x {fsdp.structure = #fsdp.structure<"h.0" forward stage 0>} : tensor<4xf32>
  %6 = arith.negf %x : tensor<4xf32>
  %sum = nn.fused %0, %1, %2, %3, %4, %5, %6, %7, %8, %c, %d : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<f64> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %e: tensor<4xf32>, %f: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>, %i: tensor<4xf32>, %j: tensor<4xf32>, %k: tensor<4xf32>, %l: tensor<4xf32>, %m: tensor<4xf32>):
    %r = nn.reduce sum "a ->" %a : tensor<4xf32> -> tensor<f64>
    nn.yield %r : tensor<f64>
  }
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// CHECK-LABEL: fsdp.segment @s
// CHECK: fsdp.launch "plain" on "compute" {
// CHECK: fsdp.launch "a" on "compute" of "h.0" {
// CHECK: %[[B:.*]] = fsdp.launch "b" on "compute" of "of" backward {
// CHECK: fsdp.launch "c" on "compute" of update wait(%[[B]]) {
// CHECK: fsdp.launch "d" on "compute" of "h.0" stage 2 {
// CHECK: fsdp.launch "e" on "compute" of "h.0" backward recomputed {
fsdp.program @all role {} {
  fsdp.segment @s train next [@s] {
    fsdp.launch "plain" on "compute" {
    }
    fsdp.launch "a" on "compute" of "h.0" {
    }
    %b = fsdp.launch "b" on "compute" of "of" backward {
    }
    fsdp.launch "c" on "compute" of update wait(%b) {
    }
    fsdp.launch "d" on "compute" of "h.0" stage 2 {
    }
    fsdp.launch "e" on "compute" of "h.0" backward recomputed {
    }
  }
}
