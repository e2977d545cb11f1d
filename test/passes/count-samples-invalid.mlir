// RUN: fsdp-opt %s --fsdp-count-samples --split-input-file --verify-diagnostics | FileCheck %s
// What cannot count samples stays as it is, with a warning.
// CHECK-NOT: fsdp.sample_count

fsdp.step @shares evaluate {
  %x = fsdp.input "x" sample_dim 1 : tensor<3x8xf32>
  // expected-warning@+1 {{evaluation uses full batches only: 'nn.softmax' needs all samples of a batch along 'row', where invalid samples cannot be excluded}}
  %y = nn.softmax %x : tensor<3x8xf32>
  %sum = nn.reduce sum "o b ->" %y : tensor<3x8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

fsdp.step @interleaved evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x6xf32>
  %rows = nn.rearrange "b t -> (t b)" %x : tensor<4x6xf32> -> tensor<24xf32>
  // expected-warning@+1 {{evaluation uses full batches only: 'nn.reduce' reduces over samples that are not contiguous; put samples first where dimensions are merged}}
  %sum = nn.reduce sum "r ->" %rows : tensor<24xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

fsdp.step @squared evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %square = arith.mulf %sum, %sum : tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples, so that the results of several batches cannot be combined}}
  fsdp.loss %square over %weight
}

// -----

fsdp.step @metric evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
  %root = math.sqrt %sum : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the weight of 'root' is neither a sum nor a mean over samples}}
  fsdp.metric "root" %sum over %root
}

// -----

fsdp.step @two evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-warning@+1 {{evaluation uses full batches only: input 'y' has 8 samples, another one 4}}
  %y = fsdp.input "y" sample_dim 0 : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.step @unruled evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-warning@+1 {{evaluation uses full batches only: 'fsdp.global_norm' does not declare how it acts along the samples of a batch}}
  %norm = fsdp.global_norm [@w] %x : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// What grows as a sum or a mean when every sample is repeated may be no sum: a quotient of two.
fsdp.step @quotient evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %a = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %c = nn.reduce sum "b ->" %w : tensor<4xf32> -> tensor<f64>
  %t = arith.divf %a, %c : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// The larger of two sums.
fsdp.step @larger evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %a = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %c = nn.reduce sum "b ->" %w : tensor<4xf32> -> tensor<f64>
  %t = arith.maximumf %a, %c : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// The choice between two sums.
fsdp.step @choice evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %a = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %c = nn.reduce sum "b ->" %w : tensor<4xf32> -> tensor<f64>
  %less = arith.cmpf olt, %a, %c : tensor<f64>
  %t = arith.select %less, %a, %c : tensor<i1>, tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// The square of a sum over a sum.
fsdp.step @square_over_sum evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %a = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %c = nn.reduce sum "b ->" %w : tensor<4xf32> -> tensor<f64>
  %square = arith.mulf %a, %a : tensor<f64>
  %t = arith.divf %square, %c : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// The product of a sum and a mean.
fsdp.step @scaled evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %a = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %m = nn.reduce mean "b ->" %w : tensor<4xf32> -> tensor<f64>
  %t = arith.mulf %a, %m : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// A function of a mean.
fsdp.step @function_of_mean evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %m = nn.reduce mean "b ->" %x : tensor<4xf32> -> tensor<f64>
  %t = math.exp %m : tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// The largest sample.
fsdp.step @largest evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %m = nn.reduce max "b ->" %x : tensor<4xf32> -> tensor<f32>
  %t = arith.extf %m : tensor<f32> to tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// A sum of samples that statistics of the batch have scaled.
fsdp.step @statistics evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %m = nn.reduce mean "b ->" %w : tensor<4xf32> -> tensor<f32>
  %each = nn.repeat "-> b" %m : tensor<f32> -> tensor<4xf32>
  %scaled = arith.mulf %x, %each : tensor<4xf32>
  %t = nn.reduce sum "b ->" %scaled : tensor<4xf32> -> tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}

// -----

// A sum over pairs of samples.
fsdp.step @pairs evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %w = fsdp.input "w" sample_dim 0 : tensor<4xf32>
  %n = arith.constant dense<4.0> : tensor<f64>
  %gram = nn.einsum "b,c->bc" %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %t = nn.reduce sum "b c ->" %gram : tensor<4x4xf32> -> tensor<f64>
  // expected-warning@+1 {{evaluation uses full batches only: the sum of 'loss' is neither a sum nor a mean over samples}}
  fsdp.loss %t over %n
}
