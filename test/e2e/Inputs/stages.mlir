// The model of test/codegen/roles.mlir as one program.
module {
  fsdp.param @a : tensor<4xf32> unit "a" init <normal, 0.5>
  fsdp.param @b : tensor<4xf32> unit "b" init <constant, 0.75>
  fsdp.param @c : tensor<4xf32> unit "c" init <constant, 0.25>
  fsdp.step @train train optimizer <adamw, lr = 0.05, clip = 0.5> {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x4xf32>
    %t = fsdp.input "t" sample_dim 0 : tensor<4x4xf32>
    %pa = fsdp.read @a : tensor<4xf32>
    %pb = fsdp.read @b : tensor<4xf32>
    %pc = fsdp.read @c : tensor<4xf32>
    %a = nn.repeat "i -> b i" %pa : tensor<4xf32> -> tensor<4x4xf32>
    %b = nn.repeat "i -> b i" %pb : tensor<4xf32> -> tensor<4x4xf32>
    %c = nn.repeat "i -> b i" %pc : tensor<4xf32> -> tensor<4x4xf32>
    %xa = arith.mulf %x, %a : tensor<4x4xf32>
    %y1 = arith.addf %xa, %c : tensor<4x4xf32>
    %y2 = arith.mulf %y1, %b : tensor<4x4xf32>
    %y3 = arith.addf %y2, %c : tensor<4x4xf32>
    %d = arith.subf %y3, %t : tensor<4x4xf32>
    %sq = arith.mulf %d, %d : tensor<4x4xf32>
    %sum = nn.reduce sum "b i ->" %sq : tensor<4x4xf32> -> tensor<f64>
    %weight = arith.constant dense<16.0> : tensor<f64>
    fsdp.loss %sum over %weight
  }
}
