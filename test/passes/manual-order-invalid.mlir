// Passes that need the ops of a region say which pass comes first.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/differentiate.mlir --fsdp-differentiate --verify-diagnostics
// RUN: fsdp-opt %t/propagate.mlir --fsdp-propagate --verify-diagnostics
// RUN: fsdp-opt %t/partition.mlir --fsdp-partition --verify-diagnostics

//--- differentiate.mlir
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x4xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  // expected-error @below {{'fsdp.manual' op must be lowered before --fsdp-differentiate; run --fsdp-inline-manual first}}
  %y = fsdp.manual(%x, %w) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}, {}]>]
      out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>, %weight: tensor<4x4xf32>):
    %p = nn.einsum "bi,io->bo" %own, %weight : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    fsdp.yield %p : tensor<4x4xf32>
  }
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

//--- propagate.mlir
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x4xf32> unit "w" init <constant, 0.0>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  // expected-error @below {{'fsdp.manual' op must be lowered before --fsdp-propagate; run --fsdp-inline-manual first}}
  %y = fsdp.manual(%x, %w) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}, {}]>]
      out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>, %weight: tensor<4x4xf32>):
    %p = nn.einsum "bi,io->bo" %own, %weight : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    fsdp.yield %p : tensor<4x4xf32>
  }
  %sum = nn.reduce sum "b o ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

//--- partition.mlir
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]} : tensor<8x4xf32>
  // expected-error @below {{'fsdp.manual' op must be lowered before --fsdp-partition; run --fsdp-inline-manual first}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] attributes {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {}]>]} : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}
