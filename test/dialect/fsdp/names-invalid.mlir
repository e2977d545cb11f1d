// Which names a module may have ("Names" in FSDPDialect.td): what can be printed, and what means nothing yet.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// A line of its own in the emitted program.
// expected-error @below {{name 'unit' 'fc\0Asystem(\22true\22);//' cannot be printed, expected UTF-8 without control characters}}
fsdp.param @w : tensor<4xf32> unit "fc\0Asystem(\22true\22);//" init <constant, 0.0>

// -----

// expected-error @below {{name 'sym_name' 'a\00b' cannot be printed, expected UTF-8 without control characters}}
fsdp.param @"a\00b" : tensor<4xf32> unit "u" init <constant, 0.0>

// -----

// A C1 control character: U+0085, next line.
// expected-error @below {{name 'unit' 'a\C2\85b' cannot be printed}}
fsdp.param @w : tensor<4xf32> unit "a\C2\85b" init <constant, 0.0>

// -----

// No UTF-8.
// expected-error @below {{name 'unit' 'a\FFb' cannot be printed}}
fsdp.param @w : tensor<4xf32> unit "a\FFb" init <constant, 0.0>

// -----

// expected-error @below {{name 'unit' is empty; give it a name}}
fsdp.param @w : tensor<4xf32> unit "" init <constant, 0.0>

// -----

// expected-error @below {{name 'sym_name' is empty; give it a name}}
fsdp.param @"" : tensor<4xf32> unit "u" init <constant, 0.0>

// -----

// Param C6.
// expected-error @below {{is called '__metadata__', a name that is reserved in weight files; choose another}}
fsdp.param @__metadata__ : tensor<4xf32> unit "u" init <constant, 0.0>

// -----

// Input C3.
fsdp.step @evaluate evaluate {
  // expected-error @below {{is called '__metadata__', a name that is reserved in data files; choose another}}
  %x = fsdp.input "__metadata__" sample_dim 0 : tensor<4xf32>
}

// -----

fsdp.step @evaluate evaluate {
  // expected-error @below {{name 'name' 'x\0D' cannot be printed}}
  %x = fsdp.input "x\0D" sample_dim 0 : tensor<4xf32>
}

// -----

// Metric C1.
fsdp.step @evaluate evaluate {
  %n = arith.constant dense<1.0> : tensor<f64>
  // expected-error @below {{is called 'tokens_per_s', a key that is reserved in the training log; choose another name}}
  fsdp.metric "tokens_per_s" %n over %n
}

// -----

fsdp.step @evaluate evaluate {
  %n = arith.constant dense<1.0> : tensor<f64>
  // expected-error @below {{is called 'val_accuracy', a key that is reserved in the training log}}
  fsdp.metric "val_accuracy" %n over %n
}

// -----

fsdp.step @evaluate evaluate {
  %n = arith.constant dense<1.0> : tensor<f64>
  // expected-note @below {{the first metric is here}}
  fsdp.metric "accuracy" %n over %n
  // expected-error @below {{'accuracy' appears twice in a step; give each its own name}}
  fsdp.metric "accuracy" %n over %n
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{name 'name' 'a\09b' cannot be printed}}
    %a = fsdp.buffer "a\09b" : !fsdp.buffer<tensor<4xf32>>
  }
}

// -----

// Step C2: names of operations stand in their locations.
#evil = loc("fc\0Aint x;")
fsdp.step @evaluate evaluate {
  // expected-error @unknown {{the name of its location 'fc\0Aint x;' cannot be printed}}
  %n = arith.constant dense<1.0> : tensor<f64> loc(#evil)
}

// -----

// Mesh C1: a word of the command line.
// expected-error @below {{mesh axis 'a b' is not an identifier, expected a letter, then letters, digits and '_'}}
fsdp.mesh @mesh <["a b"=2]>

// -----

// expected-error @below {{mesh axis '2x' is not an identifier}}
fsdp.mesh @mesh <["2x"=2]>
