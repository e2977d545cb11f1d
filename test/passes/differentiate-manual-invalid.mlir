// A maximum over ranks has no derivative: a parameter behind it is refused.
// RUN: fsdp-opt %s --fsdp-inline-manual --fsdp-differentiate --verify-diagnostics
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8x4xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<8x4xf32>
  %y = fsdp.manual(%w) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.pmax' op is between the parameter 'w' and the loss but has no derivative; use other ops or mark the parameter 'frozen'}}
    %most = fsdp.pmax %own over ["fsdp"] : tensor<4x4xf32>
    fsdp.yield %most : tensor<4x4xf32>
  }
  %sum = nn.reduce sum "a b ->" %y : tensor<4x4xf32> -> tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
