// Gradients that are not computed in the flat buffer are copied there: a parameter, a value that
// already stands in another flat buffer. Constants are written there; the rest is filled with zeros.
// RUN: fsdp-opt --fsdp-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s

// CHECK-DAG: %[[P:.*]] = fsdp.buffer "w.replicated.parameter" persistent
// CHECK-DAG: %[[A:.*]] = fsdp.buffer "a.flatten" holds @w.replicated "gradient" : <tensor<16xf32>>
// CHECK-DAG: %[[B:.*]] = fsdp.buffer "b.flatten" : <tensor<8xf32>>
// CHECK-DAG: %[[A0:.*]] = fsdp.subview %[[A]] at 0 : {{.*}} -> <tensor<8xf32>>
// CHECK-DAG: %[[A1:.*]] = fsdp.subview %[[A]] at 8 : {{.*}} -> <tensor<2xf32>>
// CHECK-DAG: %[[A2:.*]] = fsdp.subview %[[A]] at 10 : {{.*}} -> <tensor<2xf32>>
// CHECK-DAG: %[[A3:.*]] = fsdp.subview %[[A]] at 12 : {{.*}} -> <tensor<4xf32>>
// CHECK-DAG: %[[C:.*]] = fsdp.buffer "constant.3" : <tensor<2xf32>>

// The value computed in its place.
// CHECK: fsdp.launch "n" on "compute" ins(%[[P]] : {{.*}}) outs(%[[A0]] :
// What is made for a flatten has its structure.
// CHECK: fsdp.launch "constant" on "compute" of "w" backward outs(%[[A1]] :
// CHECK-NEXT: arith.constant dense<3.000000e+00> : tensor<2xf32>
// CHECK: fsdp.launch "constant 2" on "compute" of "w" backward outs(%[[A2]] :
// CHECK-NEXT: arith.constant dense<3.000000e+00> : tensor<2xf32>
// CHECK: fsdp.launch "a padding" on "compute" of "w" backward outs(%[[A3]] :
// CHECK-NEXT: arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK: fsdp.launch "all_reduce" on "activation" wait(%{{.*}}) ins(%[[A]] :
// CHECK: fsdp.launch "b flatten" on "compute" ins(%[[A0]] : {{.*}}) outs(%[[B]] :
// CHECK: fsdp.launch "all_reduce 2" on "activation" wait(%{{.*}}) ins(%[[B]] :
// CHECK-NEXT: bb0
// CHECK-NEXT: fsdp.all_reduce
// A collective reads its constant from a buffer.
// CHECK: fsdp.launch "constant 3" on "compute" outs(%[[C]] :
// CHECK: fsdp.launch "all_reduce 3" on "activation" wait(%{{.*}}) ins(%[[C]] :
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
  fsdp.storage @w.replicated : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @evaluate evaluate next [@evaluate] {
      %p = fsdp.load @w.replicated "parameter" : tensor<8xf32>
      %c = arith.constant dense<3.0> : tensor<2xf32>
      %n = arith.negf %p : tensor<8xf32> loc("n")
      %a = fsdp.flatten %n, %c, %c {fsdp.reduces = @w.replicated, fsdp.structure = #fsdp.structure<"w" backward>} : (tensor<8xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<16xf32> loc("a")
      %s = fsdp.all_reduce sum %a over ["fsdp"] : tensor<16xf32>
      %b = fsdp.flatten %n : (tensor<8xf32>) -> tensor<8xf32> loc("b")
      %t = fsdp.all_reduce sum %b over ["fsdp"] : tensor<8xf32>
      %u = fsdp.all_reduce sum %c over ["fsdp"] : tensor<2xf32>
    }
  }
}
