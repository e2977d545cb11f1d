// A least-squares step of the global phase against the reference that JAX computed, and again from
// parameters drawn by seed.
// RUN: fsdp-run %s --params=%{golden}/linear/10-5-3.init.safetensors --inputs=%{golden}/linear/10-5-3.data.safetensors --numerics=typed --outputs=%t.safetensors | FileCheck %s
// RUN: %{python} %S/Inputs/same_weights.py %t.safetensors %{golden}/linear/10-5-3.expected.safetensors 1e-6
// CHECK: step 1 grad_norm
// CHECK: step 1 loss 8.659010
// RUN: fsdp-run %s --inputs=%{golden}/linear/10-5-3.data.safetensors --seed=7 --steps=3 | FileCheck %s --check-prefix=SEED
// SEED: step 1 loss [[LOSS:.*]]
// SEED-NOT: step 2 loss [[LOSS]]
// SEED: step 3 loss
// RUN: fsdp-run %s --inputs=%{golden}/linear/10-5-3.data.safetensors --seed=7 | FileCheck %s --check-prefix=AGAIN
// RUN: fsdp-run %S/regression-local.mlir --inputs=%{golden}/linear/10-5-3.data.safetensors --seed=7 | FileCheck %s --check-prefix=AGAIN
// AGAIN: step 1 loss 1.0487189889
fsdp.param @kernel : tensor<5x3xf32> unit "m" init <normal, 0.02>
fsdp.param @bias : tensor<3xf32> unit "m" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %w = fsdp.read @kernel : tensor<5x3xf32>
  %b = fsdp.read @bias : tensor<3xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x5xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %bb = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<10x3xf32>
  %p = arith.addf %z, %bb : tensor<10x3xf32>
  %d = arith.subf %p, %y : tensor<10x3xf32>
  %sq = arith.mulf %d, %d : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %sq : tensor<10x3xf32> -> tensor<f64>
  %n = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %n
  %k = arith.constant dense<0.066666666666666666> : tensor<10x3xf32>
  %dp = arith.mulf %d, %k : tensor<10x3xf32>
  %gw = nn.einsum "bi,bo->io" %x, %dp : (tensor<10x5xf32>, tensor<10x3xf32>) -> tensor<5x3xf32>
  %gb = nn.reduce sum "b o -> o" %dp : tensor<10x3xf32> -> tensor<3xf32>
  %norm = fsdp.global_norm [@kernel, @bias] %gw, %gb : tensor<5x3xf32>, tensor<3xf32>
  fsdp.output "grad_norm" %norm
  %ok = fsdp.acceptable %norm norm %norm
  %lr = fsdp.learning_rate <sgd, lr = 0.1>
  %one = arith.constant dense<1.0> : tensor<f32>
  fsdp.update @kernel, %gw lr %lr scale %one if %ok <sgd, lr = 0.1> : tensor<5x3xf32>
  fsdp.update @bias, %gb lr %lr scale %one if %ok <sgd, lr = 0.1> : tensor<3xf32>
  fsdp.advance if %ok
}
