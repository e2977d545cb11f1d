// RUN: fsdp-opt %s --split-input-file --allow-unregistered-dialect --verify-diagnostics

// checkpoint C1: it stands in a step that trains, in no other one.

fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{is in a step of kind 'evaluate', which has no backward, expected 'train'; replace it by its body}}
  %y = fsdp.checkpoint full : tensor<8xf32> {
    %t = math.tanh %x : tensor<8xf32>
    fsdp.yield %t : tensor<8xf32>
  }
}

// -----

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  fsdp.checkpoint full {
    // expected-error @below {{is nested inside 'fsdp.checkpoint', whose body is computed twice; move it outside}}
    fsdp.checkpoint selective {
    }
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{'fsdp.checkpoint' op is in 'fsdp.segment', expected a step}}
    fsdp.checkpoint full {
    }
  }
}

// -----

// checkpoint C2: its body can be computed twice.

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.checkpoint full : tensor<8xf32> {
    // expected-error @below {{reads a batch inside 'fsdp.checkpoint', whose body is computed twice; move it outside}}
    %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
    fsdp.yield %x : tensor<8xf32>
  }
}

// -----

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %sum = arith.constant dense<1.0> : tensor<f64>
  fsdp.checkpoint full {
    // expected-error @below {{'fsdp.metric' op writes inside 'fsdp.checkpoint', whose body is computed twice; move it outside}}
    fsdp.metric "m" %sum over %sum
  }
}

// -----

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  fsdp.checkpoint full {
    // expected-error @below {{has unknown effects inside 'fsdp.checkpoint', whose body is computed twice; move it outside}}
    "other.op"() : () -> ()
  }
}

// -----

// checkpoint C3: results are what is yielded; no arguments.

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{has results 'tensor<4xf32>', expected 'tensor<8xf32>', the types it yields}}
  %y = fsdp.checkpoint full : tensor<4xf32> {
    fsdp.yield %x : tensor<8xf32>
  }
}

// -----

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  // expected-error @below {{has a body with 1 arguments, expected none}}
  fsdp.checkpoint full {
  ^bb0(%a: tensor<8xf32>):
  }
}

// -----

// Regions themselves compute nothing: what is in them belongs to units.

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  // expected-error @below {{has 'fsdp.structure', expected it only on computations in a step or segment}}
  fsdp.checkpoint full attributes {fsdp.structure = #fsdp.structure<"h.0">} {
  }
}
