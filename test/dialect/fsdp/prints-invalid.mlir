// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// print C1.
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{is in a step of kind 'evaluate', expected 'train'; remove it there}}
  fsdp.print "x" %x : tensor<8xf32>
}

// -----

// check C1.
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{is in a step of kind 'evaluate', expected 'train'; remove it there}}
  fsdp.check "x" %x : tensor<8xf32>
}

// -----

// print C2: with another print, be it in a checkpoint.
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %y = fsdp.checkpoint full : tensor<8xf32> {
    %p = arith.mulf %x, %x : tensor<8xf32>
    // expected-note @below {{the first print is here}}
    fsdp.print "x" %p : tensor<8xf32>
    fsdp.yield %p : tensor<8xf32>
  }
  // expected-error @below {{'x.min' appears twice in a step; give each its own name}}
  fsdp.print "x" %x : tensor<8xf32>
}

// -----

// print C2: with a metric.
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %n = arith.constant dense<1.0> : tensor<f64>
  // expected-note @below {{the first metric is here}}
  fsdp.metric "x.mean" %n over %n
  // expected-error @below {{'x.mean' appears twice in a step; give each its own name}}
  fsdp.print "x" %x : tensor<8xf32>
}

// -----

// check C2; a print and a check of one name are two sets of numbers.
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  fsdp.print "x" %x : tensor<8xf32>
  // expected-note @below {{the first check is here}}
  fsdp.check "x" %x : tensor<8xf32>
  // expected-error @below {{'x.check' appears twice in a step; give each its own name}}
  fsdp.check "x" %x : tensor<8xf32>
}

// -----

// print C2: keys of the log.
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{is called 'val_x', a key that is reserved in the training log; choose another name}}
  fsdp.print "val_x" %x : tensor<8xf32>
}

// -----

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{name 'name' 'a\09b' cannot be printed}}
  fsdp.print "a\09b" %x : tensor<8xf32>
}

// -----

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %n = arith.constant dense<1.0> : tensor<f64>
  // expected-error @below {{attribute 'check' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  fsdp.metric "n" %n over %n check -1
}
