// Products of sizes that do not fit 64 bits: of parameters, of values of a step, of shards, of buffers.
// RUN: fsdp-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{'w' of type 'tensor<4294967296x4294967296xf32>' takes more than 9223372036854775807 bytes; make it smaller}}
fsdp.param @w : tensor<4294967296x4294967296xf32> unit "u" init <constant, 0.0>

// -----

// The elements fit, the bytes do not.
// expected-error @below {{'w' of type 'tensor<2305843009213693952xf32>' takes more than 9223372036854775807 bytes}}
fsdp.param @w : tensor<2305843009213693952xf32> unit "u" init <constant, 0.0>

// -----

fsdp.param @w : tensor<2305843009213693951xf32> unit "u" init <constant, 0.0>

// -----

// A factor of zero leaves nothing.
fsdp.param @w : tensor<9223372036854775807x9223372036854775807x0xf32> unit "u" init <constant, 0.0>

// -----

// expected-error @below {{'file_shape' has more than 2^63 - 1 elements, expected 4 as the type has}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> file_shape [4294967296, 4294967296]

// -----

fsdp.step @evaluate evaluate {
  // expected-error @below {{has a result of type 'tensor<4611686018427387904x4xf32>', which takes more than 9223372036854775807 bytes}}
  %x = fsdp.input "x" sample_dim 0 : tensor<4611686018427387904x4xf32>
}

// -----

fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<1x4294967296xf32>
  // expected-error @below {{has a result of type 'tensor<4294967296x4294967296xf32>', which takes more than 9223372036854775807 bytes}}
  %pairs = nn.einsum "bi,bj->ij" %x, %x : (tensor<1x4294967296xf32>, tensor<1x4294967296xf32>) -> tensor<4294967296x4294967296xf32>
}

// -----

// A joined dimension that wraps around to 0.
func.func @joined(%x: tensor<4611686018427387904x4xf32>) -> tensor<0xf32> {
  // expected-error @below {{the sizes of its names multiply to 2^63 or more}}
  %y = nn.rearrange "b d -> (b d)" %x : tensor<4611686018427387904x4xf32> -> tensor<0xf32>
  return %y : tensor<0xf32>
}
