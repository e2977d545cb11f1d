// A parameter that is loaded for the first time behind its gradient, as by a report: its update stays in its step, because the gradient that
// is carried would be that of the same step.
// RUN: sed -e '/load @b.flat/{h;d}' -e '/arith.mulf/G' %s | fsdp-opt --fsdp-defer-updates 2>&1 | FileCheck %s
// CHECK: warning: no update is deferred
// CHECK-NOT: if {{.*}} deferred
// RUN: fsdp-opt --fsdp-defer-updates %s 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY-NOT: warning
// EARLY: if {{.*}} deferred
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @a : tensor<4xf32> unit "a" init <constant, 1.0>
  fsdp.param @b : tensor<4xf32> unit "b" init <constant, 1.0>
  fsdp.storage @a.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@a at 0>]
  fsdp.storage @b.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@b at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %pa = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %x = arith.negf %pa : tensor<4xf32>
      %pb = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %g = arith.mulf %x, %x : tensor<4xf32>
      %y = arith.addf %pb, %x : tensor<4xf32>
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      %ok = fsdp.acceptable %lr norm %lr
      %one = arith.constant dense<1.0> : tensor<f32>
      %new = fsdp.optimizer_step <sgd, lr = 0.1> @b.flat %pb, %g states() lr %lr scale %one if %ok : tensor<4xf32> states 0
      fsdp.store %new, @b.flat "parameter" : tensor<4xf32>
      fsdp.advance if %ok
    }
  }
}
