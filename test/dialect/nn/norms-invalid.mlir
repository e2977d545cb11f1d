// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @softmax_c1(%x: tensor<f32>) {
  // expected-error @below {{'x' has rank 0, expected at least 1}}
  %0 = nn.softmax %x : tensor<f32>
  return
}

// -----

func.func @layer_norm_c1(%x: tensor<f32>, %s: tensor<1xf32>) {
  // expected-error @below {{'x' has rank 0, expected at least 1}}
  %0:3 = nn.layer_norm %x, %s, %s eps 1.0e-05 : tensor<f32>, tensor<1xf32> -> tensor<f32>
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<8x32xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{'scale' has type 'tensor<8xf32>', expected the shape of a row of 'tensor<8x32xf32>'}}
  %0:3 = nn.layer_norm %x, %s, %s eps 1.0e-05 : tensor<8x32xf32>, tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @layer_norm_c3(%x: tensor<8x32xf32>, %s: tensor<32xf32>) {
  // expected-error @below {{'mean' has type 'tensor<32xf32>', expected the shape of the rows of 'tensor<8x32xf32>'}}
  %0:3 = nn.layer_norm %x, %s, %s eps 1.0e-05 : tensor<8x32xf32>, tensor<32xf32> -> tensor<32xf32>
  return
}

// -----

func.func @layer_norm_c4(%x: tensor<8x32xf32>, %s: tensor<32xf64>) {
  // expected-error @below {{has an operand or result of type 'tensor<32xf64>', expected element type 'f32' as in 'x'}}
  %0:3 = nn.layer_norm %x, %s, %s eps 1.0e-05 : tensor<8x32xf32>, tensor<32xf64> -> tensor<8xf32>
  return
}

// -----

func.func @layer_norm_c5(%x: tensor<8x32xf32>, %s: tensor<32xf32>) {
  // expected-error @below {{has eps 0.000000e+00, expected a positive number}}
  %0:3 = nn.layer_norm %x, %s, %s eps 0.0 : tensor<8x32xf32>, tensor<32xf32> -> tensor<8xf32>
  return
}

// -----

func.func @layer_norm_grad_c2(%x: tensor<8x32xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{'scale' has type 'tensor<8xf32>'}}
  %0:3 = nn.layer_norm_grad %x, %s, %s, %s, %x : tensor<8x32xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @layer_norm_grad_c3(%x: tensor<8x32xf32>, %s: tensor<32xf32>) {
  // expected-error @below {{'mean' has type 'tensor<32xf32>'}}
  %0:3 = nn.layer_norm_grad %x, %s, %s, %s, %x : tensor<8x32xf32>, tensor<32xf32>, tensor<32xf32>
  return
}

// -----

func.func @rms_norm_c3(%x: tensor<8x32xf32>, %s: tensor<32xf32>) {
  // expected-error @below {{'rstd' has type 'tensor<8x1xf32>', expected the shape of the rows of 'tensor<8x32xf32>'}}
  %0:2 = nn.rms_norm %x, %s eps 1.0e-06 : tensor<8x32xf32>, tensor<32xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @rms_norm_c4(%x: tensor<8x32xf32>, %s: tensor<32xf32>) {
  // expected-error @below {{'rstd' has type 'tensor<8xf64>', expected element type 'f32' for sums of 'f32'}}
  %0:2 = nn.rms_norm %x, %s eps 1.0e-06 : tensor<8x32xf32>, tensor<32xf32> -> tensor<8xf64>
  return
}

// -----

func.func @rms_norm_c5(%x: tensor<8x32xf32>, %s: tensor<32xf32>) {
  // expected-error @below {{has eps -1.000000e+00, expected a positive number}}
  %0:2 = nn.rms_norm %x, %s eps -1.0 : tensor<8x32xf32>, tensor<32xf32> -> tensor<8xf32>
  return
}

// -----

func.func @rms_norm_grad_c2(%x: tensor<8x32xf32>, %s: tensor<8xf32>) {
  // expected-error @below {{'scale' has type 'tensor<8xf32>'}}
  %0:2 = nn.rms_norm_grad %x, %s, %s, %x : tensor<8x32xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// The statistic of 16-bit rows is f32.
func.func @rms_norm_c4_wide(%x: tensor<8x32xbf16>, %s: tensor<32xbf16>) {
  // expected-error @below {{'rstd' has type 'tensor<8xbf16>', expected element type 'f32' for sums of 'bf16'}}
  %0:2 = nn.rms_norm %x, %s eps 1.0e-06 : tensor<8x32xbf16>, tensor<32xbf16> -> tensor<8xbf16>
  return
}

// -----

func.func @layer_norm_grad_c5(%x: tensor<8x32xf32>, %s: tensor<32xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{'residual' has type 'tensor<32xf32>', expected 'tensor<8x32xf32>' as 'x'}}
  %0:3 = nn.layer_norm_grad %x, %s, %m, %m, %x plus %s : tensor<8x32xf32>, tensor<32xf32>, tensor<8xf32> plus tensor<32xf32>
  return
}

// -----

func.func @layer_norm_grad_c6(%x: tensor<8x32xf32>, %s: tensor<32xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{'sums' has type 'tensor<8xf32>', expected 'tensor<32xf32>' as 'd_scale'}}
  %0:4 = nn.layer_norm_grad %x, %s, %m, %m, %x plus %x : tensor<8x32xf32>, tensor<32xf32>, tensor<8xf32> plus tensor<8x32xf32> sums tensor<8xf32>
  return
}

// -----

func.func @layer_norm_grad_c6_alone(%x: tensor<8x32xf32>, %s: tensor<32xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{has 'sums' without a 'residual'; add up the rows of 'd_x' by 'nn.reduce'}}
  %0:4 = nn.layer_norm_grad %x, %s, %m, %m, %x : tensor<8x32xf32>, tensor<32xf32>, tensor<8xf32> sums tensor<32xf32>
  return
}

// -----

func.func @rms_norm_grad_c5(%x: tensor<8x32xf32>, %s: tensor<32xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{'residual' has type 'tensor<32xf32>', expected 'tensor<8x32xf32>' as 'x'}}
  %0:2 = nn.rms_norm_grad %x, %s, %m, %x plus %s : tensor<8x32xf32>, tensor<32xf32>, tensor<8xf32> plus tensor<32xf32>
  return
}

// -----

func.func @rms_norm_grad_c6(%x: tensor<8x32xf32>, %s: tensor<32xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{'sums' has type 'tensor<8xf32>', expected 'tensor<32xf32>' as 'd_scale'}}
  %0:3 = nn.rms_norm_grad %x, %s, %m, %x plus %x : tensor<8x32xf32>, tensor<32xf32>, tensor<8xf32> plus tensor<8x32xf32> sums tensor<8xf32>
  return
}

// -----

func.func @rms_norm_grad_c6_alone(%x: tensor<8x32xf32>, %s: tensor<32xf32>, %m: tensor<8xf32>) {
  // expected-error @below {{has 'sums' without a 'residual'; add up the rows of 'd_x' by 'nn.reduce'}}
  %0:3 = nn.rms_norm_grad %x, %s, %m, %x : tensor<8x32xf32>, tensor<32xf32>, tensor<8xf32> sums tensor<32xf32>
  return
}
