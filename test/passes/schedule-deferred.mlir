// A deferred update is issued directly before the first gather of its storage in the step, which runs ahead: not later, for the second one.
// RUN: fsdp-opt --fsdp-schedule %s | FileCheck %s
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule %s -o %t
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @a : tensor<8xf32> unit "a" init <constant, 1.0>
  fsdp.param @b : tensor<8xf32> unit "b" init <constant, 1.0>
  fsdp.storage @a.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@a at 0>]
  fsdp.storage @b.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@b at 0>]
  fsdp.carried @b.gradient : tensor<4xf32> of @b.flat zeroed
  fsdp.carried @lr : tensor<f32> zeroed
  fsdp.carried @ok : tensor<i1> zeroed
  fsdp.program @all role {} {
    // CHECK: fsdp.segment @train
    fsdp.segment @train train next [@train, @drain] {
      // CHECK: fsdp.launch "a.flat all_gather" on "gather"
      // CHECK: %[[UPDATE:.*]] = fsdp.launch "b.flat optimizer_step" on "update" of "b" update ins
      // CHECK: %[[GATHER:.*]] = fsdp.launch "b.flat all_gather" on "gather" of "b" wait(%[[UPDATE]])
      // CHECK: %[[A:.*]] = fsdp.launch "negf" on "compute"
      // CHECK: %[[B:.*]] = fsdp.launch "mulf" on "compute" {{.*}}wait(%[[GATHER]])
      // CHECK: fsdp.launch "b.flat all_gather 2" on "gather"
      // CHECK-NOT: "update"
      %sa = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %a = fsdp.all_gather %sa dim 0 over ["fsdp"] {fsdp.gathers = @a.flat, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<8xf32>
      %x = arith.negf %a : tensor<8xf32>
      %p = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %g = fsdp.carry_load @b.gradient : tensor<4xf32>
      %lr = fsdp.carry_load @lr : tensor<f32>
      %ok = fsdp.carry_load @ok : tensor<i1>
      %one = arith.constant dense<1.0> : tensor<f32>
      %new = fsdp.optimizer_step <sgd, lr = 0.1> @b.flat %p, %g states() lr %lr scale %one if %ok deferred {fsdp.structure = #fsdp.structure<"b" update>} : tensor<4xf32> states 0
      fsdp.store %new, @b.flat "parameter" : tensor<4xf32>
      %sb = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %b = fsdp.all_gather %sb dim 0 over ["fsdp"] {fsdp.gathers = @b.flat, fsdp.structure = #fsdp.structure<"b">} : tensor<4xf32> -> tensor<8xf32>
      %y = arith.mulf %x, %b : tensor<8xf32>
      %a2 = arith.addf %y, %a : tensor<8xf32>
      %sb2 = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %b2 = fsdp.all_gather %sb2 dim 0 over ["fsdp"] {fsdp.gathers = @b.flat, fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4xf32> -> tensor<8xf32>
      %d = arith.subf %a2, %b2 : tensor<8xf32>
      %r = fsdp.reduce_scatter %d dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<4xf32>
      fsdp.carry_store %r, @b.gradient : tensor<4xf32>
      %rate = fsdp.learning_rate <sgd, lr = 0.1>
      fsdp.carry_store %rate, @lr : tensor<f32>
      %good = fsdp.acceptable %rate norm %rate
      fsdp.carry_store %good, @ok : tensor<i1>
      fsdp.advance if %good
    }
    // CHECK: fsdp.segment @drain
    fsdp.segment @drain train drain next [@train, @drain] {
      %p = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %g = fsdp.carry_load @b.gradient : tensor<4xf32>
      %lr = fsdp.carry_load @lr : tensor<f32>
      %ok = fsdp.carry_load @ok : tensor<i1>
      %one = arith.constant dense<1.0> : tensor<f32>
      %new = fsdp.optimizer_step <sgd, lr = 0.1> @b.flat %p, %g states() lr %lr scale %one if %ok deferred {fsdp.structure = #fsdp.structure<"b" update>} : tensor<4xf32> states 0
      fsdp.store %new, @b.flat "parameter" : tensor<4xf32>
      %no = arith.constant dense<false> : tensor<i1>
      fsdp.carry_store %no, @ok : tensor<i1>
    }
  }
}
