// The model of interleaved.mlir, in the global phase.
module attributes {fsdp.phase = "global"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @in : tensor<5x4xf32> unit "in" init <normal, 0.5>
  fsdp.param @out : tensor<4x3xf32> unit "out" init <normal, 0.5>
  fsdp.step @train train optimizer <sgd, lr = 0.1> {
    %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
    %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
    %in = fsdp.read @in : tensor<5x4xf32>
    %h = nn.einsum "bi,ih->bh" %x, %in : (tensor<10x5xf32>, tensor<5x4xf32>) -> tensor<10x4xf32>
    %d = fsdp.dropout %h rate 0.3 name "drop" : tensor<10x4xf32>
    %out = fsdp.read @out : tensor<4x3xf32>
    %z = nn.einsum "bh,ho->bo" %d, %out : (tensor<10x4xf32>, tensor<4x3xf32>) -> tensor<10x3xf32>
    %error = arith.subf %z, %y : tensor<10x3xf32>
    %square = arith.mulf %error, %error : tensor<10x3xf32>
    %sum = nn.reduce sum "b o ->" %square : tensor<10x3xf32> -> tensor<f64>
    %count = arith.constant dense<30.0> : tensor<f64>
    fsdp.loss %sum over %count
  }
}
