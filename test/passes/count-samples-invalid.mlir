// RUN: fsdp-opt %s --fsdp-count-samples --split-input-file --verify-diagnostics | FileCheck %s
// What cannot count samples stays as it is, with a warning.
// CHECK-NOT: fsdp.sample_count

fsdp.step @shares evaluate {
  %x = fsdp.input "x" sample_dim 1 : tensor<3x8xf32>
  // expected-warning@+1 {{evaluation takes whole batches only: 'nn.softmax' needs all samples of a batch along 'row', where those that do not count cannot be left out}}
  %y = nn.softmax %x : tensor<3x8xf32>
  %sum = nn.reduce sum "o b ->" %y : tensor<3x8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

fsdp.step @interleaved evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x6xf32>
  %rows = nn.rearrange "b t -> (t b)" %x : tensor<4x6xf32> -> tensor<24xf32>
  // expected-warning@+1 {{evaluation takes whole batches only: 'nn.reduce' reduces over samples that do not stand one after another; put samples first where dimensions are merged}}
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
  // expected-warning@+1 {{evaluation takes whole batches only: the sum of 'loss' is no sum over samples and no mean of them, so that those of several batches cannot be added up}}
  fsdp.loss %square over %weight
}

// -----

fsdp.step @metric evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
  %root = math.sqrt %sum : tensor<f64>
  // expected-warning@+1 {{evaluation takes whole batches only: the weight of 'root' is no sum over samples}}
  fsdp.metric "root" %sum over %root
}

// -----

fsdp.step @two evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-warning@+1 {{evaluation takes whole batches only: input 'y' has 8 samples, another one 4}}
  %y = fsdp.input "y" sample_dim 0 : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

fsdp.step @unruled evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-warning@+1 {{evaluation takes whole batches only: 'fsdp.all_finite' does not say what it does along the samples of a batch}}
  %ok = fsdp.all_finite %x : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %x : tensor<4xf32> -> tensor<f64>
  %weight = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
