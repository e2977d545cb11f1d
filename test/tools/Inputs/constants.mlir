// Constants where functions of the runtime read: a softmax of one, a metric that is one.
module @constants {
  fsdp.param @kernel : tensor<4x3xf32> unit "layer" init <normal, 2.000000e-02>
  fsdp.step @train train optimizer <sgd, lr = 1.000000e-01> {
    %x = fsdp.input "x" sample_dim 0 : tensor<6x4xf32>
    %kernel = fsdp.read @kernel : tensor<4x3xf32>
    %y = nn.einsum "bi,io->bo" %x, %kernel : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
    %two = arith.constant dense<2.0> : tensor<6x3xf32>
    %third = nn.softmax %two : tensor<6x3xf32>
    %z = arith.mulf %y, %third : tensor<6x3xf32>
    %square = arith.mulf %z, %z : tensor<6x3xf32>
    %sum = nn.reduce sum "b o ->" %square : tensor<6x3xf32> -> tensor<f64>
    %count = arith.constant dense<1.800000e+01> : tensor<f64>
    %nine = arith.constant dense<9.000000e+00> : tensor<f64>
    fsdp.metric "half" %nine over %count
    fsdp.loss %sum over %count
  }
}
