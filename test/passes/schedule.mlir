// Three units in a chain, forward, backward and update: what fsdp-partition leaves of such a model.
// RUN: fsdp-opt --fsdp-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-schedule=prefetch=0 %s | FileCheck %s --check-prefix=SERIAL
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s | fsdp-opt | fsdp-opt > %t
// RUN: fsdp-opt --fsdp-schedule=prefetch=0 --fsdp-plan-memory --fsdp-verify-schedule %s | FileCheck %s --check-prefix=SERIAL
// RUN: fsdp-opt --fsdp-schedule=prefetch=9 --fsdp-plan-memory --fsdp-verify-schedule %s

// Persistent buffers: the step state and one for each storage and state.
// CHECK: module attributes {fsdp.phase = "scheduled"}
// CHECK: fsdp.program @all
// CHECK-NEXT: %[[STATE:.*]] = fsdp.buffer "step_state" persistent : <tensor<16xi64>>
// CHECK-NEXT: %[[P1:.*]] = fsdp.buffer "fc1.flat.parameter" persistent holds @fc1.flat "parameter" : <tensor<16xf32>>
// CHECK-NEXT: %[[M1:.*]] = fsdp.buffer "fc1.flat.momentum" persistent holds @fc1.flat "momentum"

// Views of the gathered units, and places of gradients in the flat gradient.
// CHECK: fsdp.segment @train train
// CHECK-DAG: %[[U1:.*]] = fsdp.buffer "fc1.flat.all_gather" holds @fc1.flat "gathered" : <tensor<20xf32>>
// CHECK-DAG: %[[U2:.*]] = fsdp.buffer "fc2.flat.all_gather" holds @fc2.flat "gathered" : <tensor<20xf32>>
// CHECK-DAG: %[[U22:.*]] = fsdp.buffer "fc2.flat.all_gather.2" holds @fc2.flat "gathered" : <tensor<20xf32>>
// CHECK-DAG: %[[W1:.*]] = fsdp.subview %[[U1]] at 0 : {{.*}} -> <tensor<4x4xf32>>
// CHECK-DAG: %[[B1:.*]] = fsdp.subview %[[U1]] at 16 : {{.*}} -> <tensor<4xf32>>
// CHECK-DAG: %[[FLAT:.*]] = fsdp.buffer "fc1.grad.flatten" holds @fc1.flat "gradient" : <tensor<20xf32>>
// CHECK-DAG: %[[DW1:.*]] = fsdp.subview %[[FLAT]] at 0 : {{.*}} -> <tensor<4x4xf32>>
// CHECK-DAG: %[[DB1:.*]] = fsdp.subview %[[FLAT]] at 16 : {{.*}} -> <tensor<4xf32>>

// Inputs first; two gathers before any computation; the third when the first unit is done with.
// CHECK: %[[X:.*]] = fsdp.launch "input x" on "input" outs
// CHECK: %[[G1:.*]] = fsdp.launch "fc1.flat all_gather" on "gather" of "fc1" ins(%[[P1]] : {{.*}}) outs(%[[U1]]
// CHECK: %[[G2:.*]] = fsdp.launch "fc2.flat all_gather" on "gather" of "fc2" ins
// CHECK-NOT: on "gather"
// CHECK: fsdp.launch "fc1.matmul einsum" on "compute" of "fc1" wait(%[[X]], %[[G1]]) ins(%{{.*}}, %[[W1]] :
// CHECK: %[[R1:.*]] = fsdp.launch "fc1.relu" on "compute" ins(
// CHECK: %[[G3:.*]] = fsdp.launch "head.flat all_gather" on "gather" of "head" wait(%[[R1]])
// CHECK: fsdp.launch "fc2.matmul einsum" on "compute" of "fc2" wait(%[[G2]])
// The backward gather of fc2 waits for the end of fc2's forward use and not for the head.
// CHECK: %[[R2:.*]] = fsdp.launch "fc2.relu" on "compute" ins(
// CHECK: fsdp.launch "fc2.flat all_gather 2" on "gather" of "fc2" backward wait(%[[R2]]) ins(%{{.*}}) outs(%[[U22]]
// CHECK: fsdp.launch "head.matmul einsum" on "compute" of "head" wait(%[[G3]])
// The gradient is computed in the flat buffer and reduced at once; that of fc1 waits until that of
// the head, two back, is reduced.
// CHECK: %[[RH:.*]] = fsdp.launch "head.grad reduce_scatter" on "reduce" of "head" backward
// CHECK: %[[W:.*]] = fsdp.launch "fc1.weight.grad einsum" on "compute" of "fc1" backward wait(%[[RH]]) ins({{.*}}) outs(%[[DW1]] :
// CHECK: %[[B:.*]] = fsdp.launch "fc1.bias.grad reduce" on "compute" of "fc1" backward ins({{.*}}) outs(%[[DB1]] :
// CHECK: fsdp.launch "fc1.grad reduce_scatter" on "reduce" of "fc1" backward wait(%[[B]]) ins(%[[FLAT]] :
// The updates are in place, in one launch, and read the step state; their constant stands in its body.
// CHECK: fsdp.launch "optimizer_step" on "compute" wait(%{{.*}}) ins(%[[P1]], %{{[^ ]*}}, %[[M1]], {{.*}}) outs(%[[P1]], %[[M1]], {{.*}}) step_state(%[[STATE]] :
// CHECK: arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: fsdp.optimizer_step
// CHECK: fsdp.launch "advance" on "compute" ins({{.*}}) step_state(%[[STATE]]

// Without prefetch each gather waits for the last use of the unit before.
// SERIAL: %[[R1:.*]] = fsdp.launch "fc1.relu" on "compute"
// SERIAL: %[[G2:.*]] = fsdp.launch "fc2.flat all_gather" on "gather" of "fc2" wait(%[[R1]])
// SERIAL: fsdp.launch "fc2.matmul einsum" on "compute" of "fc2" wait(%[[G2]])
// SERIAL: %[[R2:.*]] = fsdp.launch "fc2.relu" on "compute"
// SERIAL: fsdp.launch "head.flat all_gather" on "gather" of "head" wait(%[[R2]])
// SERIAL: %[[DX:.*]] = fsdp.launch "head.matmul.grad einsum" on "compute" of "head" backward
// SERIAL: fsdp.launch "fc2.flat all_gather 2" on "gather" of "fc2" backward wait(%[[DX]])

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @fc1.weight : tensor<4x4xf32> unit "fc1" init <constant, 1.0>
  fsdp.param @fc1.bias : tensor<4xf32> unit "fc1" init <constant, 0.0>
  fsdp.param @fc2.weight : tensor<4x4xf32> unit "fc2" init <constant, 1.0>
  fsdp.param @fc2.bias : tensor<4xf32> unit "fc2" init <constant, 0.0>
  fsdp.param @head.weight : tensor<4x1xf32> unit "head" init <constant, 1.0>
  fsdp.storage @fc1.flat : tensor<16xf32> flat over ["fsdp"] states ["momentum"]
      members [#fsdp.member<@fc1.weight at 0>, #fsdp.member<@fc1.bias at 16>]
  fsdp.storage @fc2.flat : tensor<16xf32> flat over ["fsdp"] states ["momentum"]
      members [#fsdp.member<@fc2.weight at 0>, #fsdp.member<@fc2.bias at 16>]
  fsdp.storage @head.flat : tensor<16xf32> flat over ["fsdp"] states ["momentum"]
      members [#fsdp.member<@head.weight at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %one = arith.constant dense<1.0> : tensor<f32>
      %x = fsdp.input "x" sample_dim 0 shard_of 16 over ["fsdp"] : tensor<8x4xf32>
      // Forward.
      %s1 = fsdp.load @fc1.flat "parameter" : tensor<16xf32>
      %u1 = fsdp.all_gather %s1 dim 0 over ["fsdp"] {fsdp.gathers = @fc1.flat, fsdp.structure = #fsdp.structure<"fc1">} : tensor<16xf32> -> tensor<20xf32> loc("fc1.flat")
      %w1 = fsdp.view %u1 at 0 : tensor<20xf32> -> tensor<4x4xf32>
      %b1 = fsdp.view %u1 at 16 : tensor<20xf32> -> tensor<4xf32>
      %z1 = nn.einsum "bi,io->bo" %x, %w1 {fsdp.structure = #fsdp.structure<"fc1">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("fc1.matmul")
      %h1 = nn.fused %z1, %b1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
      ^bb0(%a: tensor<8x4xf32>, %b: tensor<4xf32>):
        %c = nn.repeat "o -> b o" %b : tensor<4xf32> -> tensor<8x4xf32>
        %s = arith.addf %a, %c : tensor<8x4xf32>
        %zero = arith.constant dense<0.0> : tensor<8x4xf32>
        %m = arith.maximumf %s, %zero : tensor<8x4xf32>
        nn.yield %m : tensor<8x4xf32>
      } loc("fc1.relu")
      %s2 = fsdp.load @fc2.flat "parameter" : tensor<16xf32>
      %u2 = fsdp.all_gather %s2 dim 0 over ["fsdp"] {fsdp.gathers = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2">} : tensor<16xf32> -> tensor<20xf32> loc("fc2.flat")
      %w2 = fsdp.view %u2 at 0 : tensor<20xf32> -> tensor<4x4xf32>
      %b2 = fsdp.view %u2 at 16 : tensor<20xf32> -> tensor<4xf32>
      %z2 = nn.einsum "bi,io->bo" %h1, %w2 {fsdp.structure = #fsdp.structure<"fc2">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("fc2.matmul")
      %h2 = nn.fused %z2, %b2 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
      ^bb0(%a: tensor<8x4xf32>, %b: tensor<4xf32>):
        %c = nn.repeat "o -> b o" %b : tensor<4xf32> -> tensor<8x4xf32>
        %s = arith.addf %a, %c : tensor<8x4xf32>
        %zero = arith.constant dense<0.0> : tensor<8x4xf32>
        %m = arith.maximumf %s, %zero : tensor<8x4xf32>
        nn.yield %m : tensor<8x4xf32>
      } loc("fc2.relu")
      %s3 = fsdp.load @head.flat "parameter" : tensor<16xf32>
      %u3 = fsdp.all_gather %s3 dim 0 over ["fsdp"] {fsdp.gathers = @head.flat, fsdp.structure = #fsdp.structure<"head">} : tensor<16xf32> -> tensor<4xf32> loc("head.flat")
      %w3 = fsdp.view %u3 at 0 : tensor<4xf32> -> tensor<4x1xf32>
      %y = nn.einsum "bi,io->bo" %h2, %w3 {fsdp.structure = #fsdp.structure<"head">} : (tensor<8x4xf32>, tensor<4x1xf32>) -> tensor<8x1xf32> loc("head.matmul")
      %sum = nn.reduce sum "b o ->" %y : tensor<8x1xf32> -> tensor<f64> loc("loss")
      %total = fsdp.all_reduce sum %sum over ["fsdp"] : tensor<f64> loc("loss")
      // Backward: of the head with the gather of forward.
      %dy = nn.repeat "-> b o" %one : tensor<f32> -> tensor<8x1xf32> loc("loss.grad")
      %dw3 = nn.einsum "bi,bo->io" %h2, %dy {fsdp.structure = #fsdp.structure<"head" backward>} : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<4x1xf32> loc("head.weight.grad")
      %f3 = fsdp.flatten %dw3 {fsdp.reduces = @head.flat, fsdp.structure = #fsdp.structure<"head" backward>} : (tensor<4x1xf32>) -> tensor<4xf32> loc("head.grad")
      %g3 = fsdp.reduce_scatter %f3 dim 0 over ["fsdp"] {fsdp.reduces = @head.flat, fsdp.structure = #fsdp.structure<"head" backward>} : tensor<4xf32> -> tensor<16xf32> loc("head.grad")
      %dh2 = nn.einsum "bo,io->bi" %dy, %w3 {fsdp.structure = #fsdp.structure<"head" backward>} : (tensor<8x1xf32>, tensor<4x1xf32>) -> tensor<8x4xf32> loc("head.matmul.grad")
      %dz2 = nn.fused %h2, %dh2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
      ^bb0(%h: tensor<8x4xf32>, %d: tensor<8x4xf32>):
        %zero = arith.constant dense<0.0> : tensor<8x4xf32>
        %p = arith.cmpf ogt, %h, %zero : tensor<8x4xf32>
        %r = arith.select %p, %d, %zero : tensor<8x4xi1>, tensor<8x4xf32>
        nn.yield %r : tensor<8x4xf32>
      } loc("fc2.relu.grad")
      %dw2 = nn.einsum "bi,bo->io" %h1, %dz2 {fsdp.structure = #fsdp.structure<"fc2" backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("fc2.weight.grad")
      %db2 = nn.reduce sum "b o -> o" %dz2 {fsdp.structure = #fsdp.structure<"fc2" backward>} : tensor<8x4xf32> -> tensor<4xf32> loc("fc2.bias.grad")
      %f2 = fsdp.flatten %dw2, %db2 {fsdp.reduces = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2" backward>} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<20xf32> loc("fc2.grad")
      %g2 = fsdp.reduce_scatter %f2 dim 0 over ["fsdp"] {fsdp.reduces = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2" backward>} : tensor<20xf32> -> tensor<16xf32> loc("fc2.grad")
      %s4 = fsdp.load @fc2.flat "parameter" : tensor<16xf32>
      %u4 = fsdp.all_gather %s4 dim 0 over ["fsdp"] {fsdp.gathers = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2" backward>} : tensor<16xf32> -> tensor<20xf32> loc("fc2.flat")
      %w4 = fsdp.view %u4 at 0 : tensor<20xf32> -> tensor<4x4xf32>
      %dh1 = nn.einsum "bo,io->bi" %dz2, %w4 {fsdp.structure = #fsdp.structure<"fc2" backward>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("fc2.matmul.grad")
      %dz1 = nn.fused %h1, %dh1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
      ^bb0(%h: tensor<8x4xf32>, %d: tensor<8x4xf32>):
        %zero = arith.constant dense<0.0> : tensor<8x4xf32>
        %p = arith.cmpf ogt, %h, %zero : tensor<8x4xf32>
        %r = arith.select %p, %d, %zero : tensor<8x4xi1>, tensor<8x4xf32>
        nn.yield %r : tensor<8x4xf32>
      } loc("fc1.relu.grad")
      %dw1 = nn.einsum "bi,bo->io" %x, %dz1 {fsdp.structure = #fsdp.structure<"fc1" backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("fc1.weight.grad")
      %db1 = nn.reduce sum "b o -> o" %dz1 {fsdp.structure = #fsdp.structure<"fc1" backward>} : tensor<8x4xf32> -> tensor<4xf32> loc("fc1.bias.grad")
      %f1 = fsdp.flatten %dw1, %db1 {fsdp.reduces = @fc1.flat, fsdp.structure = #fsdp.structure<"fc1" backward>} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<20xf32> loc("fc1.grad")
      %g1 = fsdp.reduce_scatter %f1 dim 0 over ["fsdp"] {fsdp.reduces = @fc1.flat, fsdp.structure = #fsdp.structure<"fc1" backward>} : tensor<20xf32> -> tensor<16xf32> loc("fc1.grad")
      // Update.
      %loss = arith.truncf %total : tensor<f64> to tensor<f32> loc("loss")
      fsdp.output "loss" %loss
      %lr = fsdp.learning_rate <sgd, lr = 0.1, momentum = 0.9>
      %ok = fsdp.acceptable %loss norm %loss
      %m1 = fsdp.load @fc1.flat "momentum" : tensor<16xf32>
      %p1, %n1 = fsdp.optimizer_step <sgd, lr = 0.1, momentum = 0.9> @fc1.flat %s1, %g1 states(%m1) lr %lr scale %one if %ok : tensor<16xf32> states 1
      fsdp.store %p1, @fc1.flat "parameter" : tensor<16xf32>
      fsdp.store %n1, @fc1.flat "momentum" : tensor<16xf32>
      %l2 = fsdp.load @fc2.flat "parameter" : tensor<16xf32>
      %m2 = fsdp.load @fc2.flat "momentum" : tensor<16xf32>
      %p2, %n2 = fsdp.optimizer_step <sgd, lr = 0.1, momentum = 0.9> @fc2.flat %l2, %g2 states(%m2) lr %lr scale %one if %ok : tensor<16xf32> states 1
      fsdp.store %p2, @fc2.flat "parameter" : tensor<16xf32>
      fsdp.store %n2, @fc2.flat "momentum" : tensor<16xf32>
      %m3 = fsdp.load @head.flat "momentum" : tensor<16xf32>
      %p3, %n3 = fsdp.optimizer_step <sgd, lr = 0.1, momentum = 0.9> @head.flat %s3, %g3 states(%m3) lr %lr scale %one if %ok : tensor<16xf32> states 1
      fsdp.store %p3, @head.flat "parameter" : tensor<16xf32>
      fsdp.store %n3, @head.flat "momentum" : tensor<16xf32>
      fsdp.advance if %ok
    }
  }
}
