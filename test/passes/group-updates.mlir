// RUN: fsdp-opt %s --fsdp-schedule --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule --split-input-file -o %t.mlir

// Updates by one rule are one launch, up to five of two states; what their bodies share is there once.
// CHECK-LABEL: fsdp.program @all
// CHECK: fsdp.launch "optimizer_step" on "compute"
// CHECK-SAME: ins(%[[PA:[^,]*]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[LR:[^,]*]], %[[OK:[^,]*]], %[[PB:[^,]*]],
// CHECK-SAME: outs(%[[PA]],
// CHECK: ^bb0(%{{[^:]*}}: tensor<4xf32>, %{{[^:]*}}: tensor<4xf32>, %{{[^:]*}}: tensor<4xf32>, %{{[^:]*}}: tensor<4xf32>, %[[L:[^:]*]]: tensor<f32>, %[[K:[^:]*]]: tensor<i1>,
// CHECK: %[[ONE:.*]] = arith.constant
// CHECK-NOT: arith.constant
// CHECK: fsdp.optimizer_step {{.*}} @a {{.*}} lr %[[L]] scale %[[ONE]] if %[[K]]
// CHECK: fsdp.optimizer_step {{.*}} @b {{.*}} lr %[[L]] scale %[[ONE]] if %[[K]]
// CHECK: fsdp.optimizer_step {{.*}} @c
// CHECK: fsdp.optimizer_step {{.*}} @d
// CHECK: fsdp.optimizer_step {{.*}} @e
// CHECK: fsdp.yield
// CHECK: fsdp.launch "f optimizer_step" on "compute"
// CHECK-NOT: fsdp.optimizer_step {{.*}} @e
// CHECK: fsdp.optimizer_step {{.*}} @f
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<8xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pb at 0>]
fsdp.param @pc : tensor<8xf32> unit "c" init <constant, 0.0>
fsdp.storage @c : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pc at 0>]
fsdp.param @pd : tensor<8xf32> unit "d" init <constant, 0.0>
fsdp.storage @d : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pd at 0>]
fsdp.param @pe : tensor<8xf32> unit "e" init <constant, 0.0>
fsdp.storage @e : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pe at 0>]
fsdp.param @pf : tensor<8xf32> unit "f" init <constant, 0.0>
fsdp.storage @f : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pf at 0>]
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %g = fsdp.input "g" sample_dim 0 : tensor<4xf32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %sum = nn.reduce sum "a ->" %g : tensor<4xf32> -> tensor<f32>
    %ok = fsdp.acceptable %sum norm %sum
    %lr = fsdp.learning_rate <adamw, lr = 0.1>
    %a0 = fsdp.load @a "parameter" : tensor<4xf32>
    %a1 = fsdp.load @a "exp_avg" : tensor<4xf32>
    %a2 = fsdp.load @a "exp_avg_sq" : tensor<4xf32>
    %a3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @a %a0, %g states(%a1, %a2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %a3#0, @a "parameter" : tensor<4xf32>
    fsdp.store %a3#1, @a "exp_avg" : tensor<4xf32>
    fsdp.store %a3#2, @a "exp_avg_sq" : tensor<4xf32>
    %b0 = fsdp.load @b "parameter" : tensor<4xf32>
    %b1 = fsdp.load @b "exp_avg" : tensor<4xf32>
    %b2 = fsdp.load @b "exp_avg_sq" : tensor<4xf32>
    %b3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @b %b0, %g states(%b1, %b2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %b3#0, @b "parameter" : tensor<4xf32>
    fsdp.store %b3#1, @b "exp_avg" : tensor<4xf32>
    fsdp.store %b3#2, @b "exp_avg_sq" : tensor<4xf32>
    %c0 = fsdp.load @c "parameter" : tensor<4xf32>
    %c1 = fsdp.load @c "exp_avg" : tensor<4xf32>
    %c2 = fsdp.load @c "exp_avg_sq" : tensor<4xf32>
    %c3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @c %c0, %g states(%c1, %c2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %c3#0, @c "parameter" : tensor<4xf32>
    fsdp.store %c3#1, @c "exp_avg" : tensor<4xf32>
    fsdp.store %c3#2, @c "exp_avg_sq" : tensor<4xf32>
    %d0 = fsdp.load @d "parameter" : tensor<4xf32>
    %d1 = fsdp.load @d "exp_avg" : tensor<4xf32>
    %d2 = fsdp.load @d "exp_avg_sq" : tensor<4xf32>
    %d3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @d %d0, %g states(%d1, %d2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %d3#0, @d "parameter" : tensor<4xf32>
    fsdp.store %d3#1, @d "exp_avg" : tensor<4xf32>
    fsdp.store %d3#2, @d "exp_avg_sq" : tensor<4xf32>
    %e0 = fsdp.load @e "parameter" : tensor<4xf32>
    %e1 = fsdp.load @e "exp_avg" : tensor<4xf32>
    %e2 = fsdp.load @e "exp_avg_sq" : tensor<4xf32>
    %e3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @e %e0, %g states(%e1, %e2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %e3#0, @e "parameter" : tensor<4xf32>
    fsdp.store %e3#1, @e "exp_avg" : tensor<4xf32>
    fsdp.store %e3#2, @e "exp_avg_sq" : tensor<4xf32>
    %f0 = fsdp.load @f "parameter" : tensor<4xf32>
    %f1 = fsdp.load @f "exp_avg" : tensor<4xf32>
    %f2 = fsdp.load @f "exp_avg_sq" : tensor<4xf32>
    %f3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @f %f0, %g states(%f1, %f2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %f3#0, @f "parameter" : tensor<4xf32>
    fsdp.store %f3#1, @f "exp_avg" : tensor<4xf32>
    fsdp.store %f3#2, @f "exp_avg_sq" : tensor<4xf32>
    fsdp.advance if %ok
  }
}
}

// -----

// An update whose result is used before the next one remains apart, and so does one at another rate.
// CHECK-LABEL: fsdp.program @apart
// CHECK: fsdp.launch "a optimizer_step"
// CHECK: fsdp.launch {{.*}}"gather"
// CHECK: fsdp.launch "optimizer_step" on "compute"
// CHECK: fsdp.optimizer_step {{.*}} @b
// CHECK: fsdp.optimizer_step {{.*}} @c
// CHECK: fsdp.launch "d optimizer_step"
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<8xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pb at 0>]
fsdp.param @pc : tensor<8xf32> unit "c" init <constant, 0.0>
fsdp.storage @c : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pc at 0>]
fsdp.param @pd : tensor<8xf32> unit "d" init <constant, 0.0>
fsdp.storage @d : tensor<4xf32> flat over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@pd at 0>]
fsdp.program @apart role {} {
  fsdp.segment @train train next [@train] {
    %g = fsdp.input "g" sample_dim 0 : tensor<4xf32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %sum = nn.reduce sum "a ->" %g : tensor<4xf32> -> tensor<f32>
    %ok = fsdp.acceptable %sum norm %sum
    %lr = fsdp.learning_rate <adamw, lr = 0.1>
    %a0 = fsdp.load @a "parameter" : tensor<4xf32>
    %a1 = fsdp.load @a "exp_avg" : tensor<4xf32>
    %a2 = fsdp.load @a "exp_avg_sq" : tensor<4xf32>
    %a3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @a %a0, %g states(%a1, %a2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %a3#0, @a "parameter" : tensor<4xf32>
    fsdp.store %a3#1, @a "exp_avg" : tensor<4xf32>
    fsdp.store %a3#2, @a "exp_avg_sq" : tensor<4xf32>
    %all = fsdp.all_gather %a3#0 dim 0 over ["fsdp"] {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a" update>} : tensor<4xf32> -> tensor<8xf32>
    %norm = nn.reduce sum "a ->" %all : tensor<8xf32> -> tensor<f32>
    fsdp.output "norm" %norm
    %half = arith.addf %lr, %lr : tensor<f32>
    %b0 = fsdp.load @b "parameter" : tensor<4xf32>
    %b1 = fsdp.load @b "exp_avg" : tensor<4xf32>
    %b2 = fsdp.load @b "exp_avg_sq" : tensor<4xf32>
    %b3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @b %b0, %g states(%b1, %b2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %b3#0, @b "parameter" : tensor<4xf32>
    fsdp.store %b3#1, @b "exp_avg" : tensor<4xf32>
    fsdp.store %b3#2, @b "exp_avg_sq" : tensor<4xf32>
    %c0 = fsdp.load @c "parameter" : tensor<4xf32>
    %c1 = fsdp.load @c "exp_avg" : tensor<4xf32>
    %c2 = fsdp.load @c "exp_avg_sq" : tensor<4xf32>
    %c3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @c %c0, %g states(%c1, %c2) lr %lr scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %c3#0, @c "parameter" : tensor<4xf32>
    fsdp.store %c3#1, @c "exp_avg" : tensor<4xf32>
    fsdp.store %c3#2, @c "exp_avg_sq" : tensor<4xf32>
    %d0 = fsdp.load @d "parameter" : tensor<4xf32>
    %d1 = fsdp.load @d "exp_avg" : tensor<4xf32>
    %d2 = fsdp.load @d "exp_avg_sq" : tensor<4xf32>
    %d3:3 = fsdp.optimizer_step <adamw, lr = 0.1> @d %d0, %g states(%d1, %d2) lr %half scale %one if %ok : tensor<4xf32> states 2
    fsdp.store %d3#0, @d "parameter" : tensor<4xf32>
    fsdp.store %d3#1, @d "exp_avg" : tensor<4xf32>
    fsdp.store %d3#2, @d "exp_avg_sq" : tensor<4xf32>
    fsdp.advance if %ok
  }
}
}
