// An update stands in the next step before its parameter is loaded there, if the step computes with parameters of another storage before.
// RUN: fsdp-opt --fsdp-defer-updates %s | FileCheck %s
// RUN: fsdp-opt --fsdp-defer-updates %s | fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule | FileCheck %s --check-prefix=SCHEDULED
// A second time nothing changes.
// RUN: fsdp-opt --fsdp-defer-updates %s > %t.once
// RUN: fsdp-opt --fsdp-defer-updates %t.once > %t.twice 2> %t.warning
// RUN: diff %t.once %t.twice
// RUN: FileCheck %s --check-prefix=TWICE < %t.warning
// TWICE: warning: no update is deferred: one overlaps with computation of the next step only if that uses parameters of another unit before, and if they are not kept on every rank (zero1, zero2); leave out --defer-updates
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @a : tensor<4xf32> unit "a" init <constant, 1.0>
  fsdp.param @b : tensor<4xf32> unit "b" init <constant, 1.0>
  fsdp.storage @a.flat : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@a at 0>]
  fsdp.storage @b.flat : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@b at 0>]
  // Zero before the first step: its deferred updates do nothing.
  // CHECK: fsdp.carried @b.flat.gradient : tensor<4xf32> of @b.flat zeroed
  // CHECK: fsdp.carried @train.lr : tensor<f32> zeroed
  // CHECK: fsdp.carried @train.ok : tensor<i1> zeroed
  // A scale that is a constant is not carried.
  // CHECK-NOT: fsdp.carried
  // SCHEDULED: fsdp.buffer "b.flat.gradient" persistent zeroed holds @b.flat "accumulator" offset {{.*}}
  // SCHEDULED: fsdp.buffer "train.ok" persistent zeroed offset {{.*}}
  // CHECK: fsdp.program @all
  fsdp.program @all role {} {
    // What looks at parameters comes after a drain.
    // CHECK: fsdp.segment @train train next [@train, @drain]
    // SCHEDULED: fsdp.segment @train train
    fsdp.segment @train train next [@train, @evaluate] {
      %pa = fsdp.load @a.flat "parameter" : tensor<4xf32>
      // The storage that is used first is updated in its own step.
      // CHECK-NOT: fsdp.optimizer_step
      // CHECK: arith.negf
      %x = arith.negf %pa : tensor<4xf32>
      // CHECK: %[[P:.*]] = fsdp.load @b.flat "parameter"
      // CHECK: fsdp.load @b.flat "exp_avg"
      // CHECK: fsdp.load @b.flat "exp_avg_sq"
      // CHECK: %[[G:.*]] = fsdp.carry_load @b.flat.gradient
      // CHECK: %[[LR:.*]] = fsdp.carry_load @train.lr
      // CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
      // CHECK: %[[OK:.*]] = fsdp.carry_load @train.ok
      // CHECK: %[[NEW:.*]], %{{.*}}:2 = fsdp.optimizer_step <adamw, lr = 1.000000e-01> @b.flat %[[P]], %[[G]] states(%{{.*}}) lr %[[LR]] scale %[[ONE]] if %[[OK]] deferred
      // CHECK: fsdp.store %[[NEW]], @b.flat "parameter"
      // CHECK: fsdp.load @b.flat "parameter"
      // On a stream of its own, before what reads the parameter.
      // SCHEDULED: %[[UPDATE:.*]] = fsdp.launch "b.flat optimizer_step" on "update"
      // SCHEDULED: fsdp.launch "mulf" on "compute" wait(%[[UPDATE]]
      %pb = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %y = arith.mulf %x, %pb : tensor<4xf32>
      // CHECK: %[[DB:.*]] = arith.addf
      // CHECK: fsdp.carry_store %[[DB]], @b.flat.gradient
      %db = arith.addf %y, %x : tensor<4xf32>
      %da = arith.subf %y, %db : tensor<4xf32>
      %one = arith.constant dense<1.0> : tensor<f32>
      %lr = fsdp.learning_rate <adamw, lr = 0.1>
      // CHECK: %[[FINITE:.*]] = fsdp.acceptable
      // CHECK: fsdp.carry_store %[[FINITE]], @train.ok
      %ok = fsdp.acceptable %lr norm %lr
      %b0 = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %b1 = fsdp.load @b.flat "exp_avg" : tensor<4xf32>
      %b2 = fsdp.load @b.flat "exp_avg_sq" : tensor<4xf32>
      %nb:3 = fsdp.optimizer_step <adamw, lr = 0.1> @b.flat %b0, %db states(%b1, %b2) lr %lr scale %one if %ok : tensor<4xf32> states 2
      fsdp.store %nb#0, @b.flat "parameter" : tensor<4xf32>
      fsdp.store %nb#1, @b.flat "exp_avg" : tensor<4xf32>
      fsdp.store %nb#2, @b.flat "exp_avg_sq" : tensor<4xf32>
      // CHECK-NOT: @b.flat
      // CHECK: fsdp.optimizer_step <adamw, lr = 1.000000e-01> @a.flat {{.*}} if %[[FINITE]] : tensor
      %a0 = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %a1 = fsdp.load @a.flat "exp_avg" : tensor<4xf32>
      %a2 = fsdp.load @a.flat "exp_avg_sq" : tensor<4xf32>
      %na:3 = fsdp.optimizer_step <adamw, lr = 0.1> @a.flat %a0, %da states(%a1, %a2) lr %lr scale %one if %ok : tensor<4xf32> states 2
      fsdp.store %na#0, @a.flat "parameter" : tensor<4xf32>
      fsdp.store %na#1, @a.flat "exp_avg" : tensor<4xf32>
      fsdp.store %na#2, @a.flat "exp_avg_sq" : tensor<4xf32>
      // CHECK: fsdp.advance if %[[FINITE]]
      fsdp.advance if %ok
    }
    // CHECK: fsdp.segment @evaluate evaluate next [@train, @evaluate]
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
    }
    // CHECK: fsdp.segment @drain train drain next [@train, @evaluate, @drain]
    // CHECK: fsdp.optimizer_step {{.*}} @b.flat {{.*}} deferred
    // The next step does not perform the update again.
    // CHECK: %[[NO:.*]] = arith.constant dense<false>
    // CHECK: fsdp.carry_store %[[NO]], @train.ok
    // SCHEDULED: fsdp.segment @drain train
    // SCHEDULED: %[[UPDATE:.*]] = fsdp.launch "b.flat optimizer_step" on "update"
    // SCHEDULED: fsdp.launch "train.ok constant" on "compute" of update wait(%[[UPDATE]])
  }
}
