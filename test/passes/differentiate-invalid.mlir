// RUN: fsdp-opt %s --fsdp-differentiate --split-input-file --verify-diagnostics

fsdp.param @w : tensor<f64> unit "w" init <constant, 0.0>
fsdp.step @weight_depends train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<f64>
  %e = math.exp %w : tensor<f64>
  // expected-error @below {{weight depends on the parameter 'w'; the weight of a loss counts the elements of its sum and may depend only on inputs}}
  fsdp.loss %w over %e
}

// -----

fsdp.param @w : tensor<f64> unit "w" init <constant, 0.0>
// expected-error @below {{parameter 'unused' does not influence the loss; mark it 'frozen' or use it}}
fsdp.param @unused : tensor<f64> unit "w" init <constant, 0.0>
fsdp.step @no_influence train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  // expected-note @below {{the loss of step 'no_influence'}}
  fsdp.loss %w over %one
}

// -----

// Only through an index, which has no derivative.
// expected-error @below {{parameter 'w' does not influence the loss}}
fsdp.param @w : tensor<8xf64> unit "w" init <constant, 0.0>
fsdp.step @through_index train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<8xf64>
  %i = nn.argmax %w : tensor<8xf64> -> tensor<i32>
  %f = arith.sitofp %i : tensor<i32> to tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  // expected-note @below {{the loss of step 'through_index'}}
  fsdp.loss %f over %one
}

// -----

fsdp.param @w : tensor<f64> unit "w" init <constant, 0.0>
fsdp.step @no_derivative train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @w : tensor<f64>
  // expected-error @below {{is between the parameter 'w' and the loss but has no derivative; use other ops or mark the parameter 'frozen'}}
  %r = math.round %w : tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %r over %one
}

// -----

// expected-error @below {{has no loss to differentiate; mark it with 'fsdp.loss'}}
fsdp.step @no_loss train optimizer <sgd, lr = 0.1> {
}

// -----

// What text is generated with evaluates only.
fsdp.param @w : tensor<2x3x1xf32> unit "w" init <constant, 0.0>
fsdp.step @through_rows train optimizer <sgd, lr = 0.1> {
  %at = fsdp.input "at" sample_dim 0 : tensor<2x1xi32>
  %table = fsdp.input "table" sample_dim 0 : tensor<2x3x4xf32>
  %rows = fsdp.read @w : tensor<2x3x1xf32>
  // expected-error @below {{'nn.write_rows' op is between the parameter 'w' and the loss but has no derivative; use other ops or mark the parameter 'frozen'}}
  %y = nn.write_rows %table, %rows, %at dim 2 : tensor<2x3x4xf32>, tensor<2x3x1xf32>, tensor<2x1xi32>
  %sum = nn.reduce sum "a b c ->" %y : tensor<2x3x4xf32> -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %one
}

// -----

fsdp.param @w : tensor<2x2x4x3xf32> unit "w" init <constant, 0.0>
fsdp.step @through_kept_keys train optimizer <sgd, lr = 0.1> {
  %at = fsdp.input "at" sample_dim 0 : tensor<2x1xi32>
  %q = fsdp.input "q" sample_dim 0 : tensor<2x1x2x3xf32>
  %k = fsdp.read @w : tensor<2x2x4x3xf32>
  // expected-error @below {{'nn.cached_attention' op is between the parameter 'w' and the loss but has no derivative; use other ops or mark the parameter 'frozen'}}
  %y = nn.cached_attention "b t h d" %q, %k, %k, %at scale 1.0 : tensor<2x1x2x3xf32>, tensor<2x2x4x3xf32>, tensor<2x1xi32>
  %sum = nn.reduce sum "b t h d ->" %y : tensor<2x1x2x3xf32> -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %one
}

// -----

// What a loss has with its gradient is made behind differentiation.
fsdp.param @w : tensor<4x8xf32> unit "w" init <constant, 0.0>
fsdp.step @second_derivative train optimizer <sgd, lr = 0.1> {
  %l = fsdp.input "l" sample_dim 0 : tensor<4xi32>
  %w = fsdp.read @w : tensor<4x8xf32>
  %d = arith.constant dense<0.5> : tensor<4xf32>
  // expected-error @below {{'nn.cross_entropy' op has a 'gradient', which has no gradient itself; use 'nn.cross_entropy_grad' where it is needed}}
  %loss, %lse, %g = nn.cross_entropy %w, %l upstream %d
      : tensor<4x8xf32>, tensor<4xi32> upstream tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>
  %sum = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %count
}
