// The same step as regression-global.mlir on three ranks whose shares of batch and unit are uneven.
// RUN: fsdp-run %s --params=%{golden}/linear/10-5-3.init.safetensors --inputs=%{golden}/linear/10-5-3.data.safetensors --outputs=%t.safetensors | FileCheck %s
// RUN: %{python} %S/Inputs/same_weights.py %t.safetensors %{golden}/linear/10-5-3.expected.safetensors 1e-6
// CHECK: step 1 grad_norm
// CHECK: step 1 loss 8.659010
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=3]>
  fsdp.param @kernel : tensor<5x3xf32> unit "m" init <normal, 0.02>
  fsdp.param @bias : tensor<3xf32> unit "m" init <constant, 0.0>
  fsdp.storage @m.flat : tensor<16xf32> flat over ["fsdp"] states []
      members [#fsdp.member<@kernel at 0>, #fsdp.member<@bias at 15>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<4x5xf32>
      %y = fsdp.input "y" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<4x3xf32>
      %s = fsdp.load @m.flat "parameter" : tensor<16xf32>
      %f = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<18xf32>
      %w = fsdp.view %f at 0 : tensor<18xf32> -> tensor<5x3xf32>
      %b = fsdp.view %f at 15 : tensor<18xf32> -> tensor<3xf32>
      %z = nn.einsum "bi,io->bo" %x, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
      %bb = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<4x3xf32>
      %p = arith.addf %z, %bb : tensor<4x3xf32>
      %d0 = arith.subf %p, %y : tensor<4x3xf32>
      %d = fsdp.mask_padding %d0 dim 0 of 10 over ["fsdp"] fill 0.0 : tensor<4x3xf32>
      %sq = arith.mulf %d, %d : tensor<4x3xf32>
      %part = nn.reduce sum "b o ->" %sq : tensor<4x3xf32> -> tensor<f64>
      %sum = fsdp.all_reduce sum %part over ["fsdp"] : tensor<f64>
      %n = arith.constant dense<30.0> : tensor<f64>
      %mean = arith.divf %sum, %n : tensor<f64>
      %loss = arith.truncf %mean : tensor<f64> to tensor<f32>
      fsdp.output "loss" %loss
      %k = arith.constant dense<0.066666666666666666> : tensor<4x3xf32>
      %dp = arith.mulf %d, %k : tensor<4x3xf32>
      %gw = nn.einsum "bi,bo->io" %x, %dp : (tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
      %gb = nn.reduce sum "b o -> o" %dp : tensor<4x3xf32> -> tensor<3xf32>
      %g = fsdp.flatten %gw, %gb : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<18xf32>
      %gs = fsdp.reduce_scatter %g dim 0 over ["fsdp"] : tensor<18xf32> -> tensor<16xf32>
      %sq0 = fsdp.square_sum %gs : tensor<16xf32>
      %sq1 = fsdp.all_reduce sum %sq0 over ["fsdp"] : tensor<f64>
      %root = math.sqrt %sq1 : tensor<f64>
      %norm = arith.truncf %root : tensor<f64> to tensor<f32>
      fsdp.output "grad_norm" %norm
      %ok = fsdp.acceptable %loss norm %norm
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      %one = arith.constant dense<1.0> : tensor<f32>
      %s1 = fsdp.optimizer_step <sgd, lr = 0.1> @m.flat %s, %gs states() lr %lr scale %one if %ok : tensor<16xf32> states 0
      fsdp.store %s1, @m.flat "parameter" : tensor<16xf32>
      fsdp.advance if %ok
    }
  }
}
