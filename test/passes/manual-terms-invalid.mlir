// Local terms are left where whole values belong, and entered once.
// RUN: fsdp-opt %s --split-input-file --fsdp-propagate --verify-diagnostics

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{'fsdp.psum' op is over axis "fsdp", over which its operand is not in local terms, expected the result of 'fsdp.enter_manual'; write it in 'fsdp.manual'}}
  %s = fsdp.psum %x over ["fsdp"] : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{'fsdp.exit_manual' op is over axis "fsdp", over which its operand is not in local terms, expected the result of 'fsdp.enter_manual'; write it in 'fsdp.manual'}}
  %s = fsdp.exit_manual %x <@mesh, [{}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<4x4xf32>
  // expected-error @below {{'fsdp.enter_manual' op is over axis "fsdp", over which its operand is in local terms already}}
  %part = fsdp.enter_manual %own <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<4x4xf32> -> tensor<2x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<4x4xf32>
  %sum = nn.reduce sum "b o ->" %own : tensor<4x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  // expected-error @below {{'fsdp.loss' op takes a value in the local terms of axis "fsdp", expected a whole one; use 'fsdp.exit_manual' first}}
  fsdp.loss %sum over %weight
}
