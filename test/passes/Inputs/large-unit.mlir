fsdp.param @a : tensor<35184372088833xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<35184372088832xf32> unit "u" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 1.0> {
  %a = fsdp.read @a : tensor<35184372088833xf32>
  %b = fsdp.read @b : tensor<35184372088832xf32>
  %of_a = nn.reduce sum "d ->" %a : tensor<35184372088833xf32> -> tensor<f64>
  %of_b = nn.reduce sum "d ->" %b : tensor<35184372088832xf32> -> tensor<f64>
  %sum = arith.addf %of_a, %of_b : tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %one
}
