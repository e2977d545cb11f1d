fsdp.param @a : tensor<1152921504606846976xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<1152921504606846976xf32> unit "u" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 1.0> {
  %a = fsdp.read @a : tensor<1152921504606846976xf32>
  %b = fsdp.read @b : tensor<1152921504606846976xf32>
  %product = arith.mulf %a, %b : tensor<1152921504606846976xf32>
  %sum = nn.reduce sum "d ->" %product : tensor<1152921504606846976xf32> -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %one
}
