// One layer and a mean squared error, before any pass.
fsdp.param @kernel : tensor<5x3xf32> unit "layer" init <normal, 2.0e-02>
fsdp.param @bias : tensor<3xf32> unit "layer" init <constant, 0.0>
fsdp.step @train train optimizer <adamw, lr = 3.0e-04, weight_decay = 1.0e-02> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %kernel = fsdp.read @kernel : tensor<5x3xf32>
  %product = nn.einsum "bi,io->bo" %x, %kernel : (tensor<10x5xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %bias = fsdp.read @bias : tensor<3xf32>
  %biases = nn.repeat "o -> b o" %bias : tensor<3xf32> -> tensor<10x3xf32>
  %prediction = arith.addf %product, %biases : tensor<10x3xf32>
  %error = arith.subf %prediction, %y : tensor<10x3xf32>
  %square = arith.mulf %error, %error : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<10x3xf32> -> tensor<f64>
  %count = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %count
}
