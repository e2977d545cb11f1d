// What the CPU target refuses, and why.
// RUN: fsdp-translate --fsdp-to-cpp --split-input-file --verify-diagnostics %s
// RUN: fsdp-translate --fsdp-to-record --split-input-file --verify-diagnostics %s

// A module of another phase.
// expected-error @below {{got a module in the global phase, expected the scheduled phase; run fsdp-schedule and fsdp-plan-memory}}
module {
  fsdp.mesh @mesh <["fsdp"=2]>
}

// -----

// No program, or several.
// expected-error @below {{got 0 programs, expected 1}}
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
}

// -----

// Memory that is not planned.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} {
    // expected-error @below {{'step_state' has no offset; run fsdp-plan-memory}}
    %s = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

module attributes {fsdp.phase = "scheduled"} {
  // expected-error @below {{has no arena size; run fsdp-plan-memory}}
  fsdp.program @all role {} {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

module attributes {fsdp.phase = "scheduled"} {
  // expected-error @below {{has no persistent buffer 'step_state'; run fsdp-schedule}}
  fsdp.program @all role {} arena 128 {
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

// A storage that nothing holds.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
  // expected-error @below {{has no persistent buffer that holds its 'parameter'; run fsdp-schedule}}
  fsdp.storage @s : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} arena 128 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

// Local IR in a segment.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 128 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      // expected-error @below {{is in a scheduled segment, expected buffers, subviews and launches; run fsdp-schedule}}
      %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
    }
  }
}

// -----

// A launch that needs the step state and does not say so.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 192 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %lr = fsdp.buffer "lr" offset 128 : !fsdp.buffer<tensor<f32>>
      // expected-error @below {{'rate' needs the step state; name its buffer with 'step_state'}}
      %t = fsdp.launch "rate" on "compute" outs(%lr : !fsdp.buffer<tensor<f32>>) {
        %v = fsdp.learning_rate <sgd, lr = 0.1>
        fsdp.yield %v : tensor<f32>
      }
    }
  }
}

// -----

// One input with two shapes.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<4xf32>>
      %t = fsdp.launch "a" on "input" outs(%a : !fsdp.buffer<tensor<8xf32>>) {
        %v = fsdp.input "x" sample_dim 0 : tensor<8xf32>
        fsdp.yield %v : tensor<8xf32>
      }
      %u = fsdp.launch "b" on "input" outs(%b : !fsdp.buffer<tensor<4xf32>>) {
        // expected-error @below {{'x' has type 'tensor<4xf32>' here and 'tensor<8xf32>' elsewhere, expected the same batch in every segment}}
        %v = fsdp.input "x" sample_dim 0 : tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
    }
  }
}

// -----

// One input in two numbers of microbatches, with loads of the same size.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<2xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<2xf32>>
      %t = fsdp.launch "a" on "input" outs(%a : !fsdp.buffer<tensor<2xf32>>) {
        %v = fsdp.input "x" sample_dim 0 shard_of 5 over [] microbatches 3 at 0 : tensor<2xf32>
        fsdp.yield %v : tensor<2xf32>
      }
      %u = fsdp.launch "b" on "input" outs(%b : !fsdp.buffer<tensor<2xf32>>) {
        // expected-error @below {{'x' is loaded in 4 microbatches here and in 3 elsewhere, expected the same number in every segment}}
        %v = fsdp.input "x" sample_dim 0 shard_of 5 over [] microbatches 4 at 1 : tensor<2xf32>
        fsdp.yield %v : tensor<2xf32>
      }
    }
  }
}

// -----

// A constant where the runtime wants an address.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %t = fsdp.launch "output" on "compute" {
        %c = arith.constant dense<1.0> : tensor<f32>
        // expected-error @below {{has operand #0 that is not in a buffer; store the constant in a buffer first}}
        fsdp.output "loss" %c
      }
    }
  }
}

// -----

// A result that goes nowhere.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %t = fsdp.launch "x" on "input" {
        // expected-error @below {{has result #0 that is not in a buffer; yield it}}
        %v = fsdp.input "x" sample_dim 0 : tensor<8xf32>
      }
    }
  }
}

// -----

// No function of the runtime for a type.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf64>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<f64>>
      %t = fsdp.launch "norm" on "compute" ins(%a : !fsdp.buffer<tensor<8xf64>>) outs(%b : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%x: tensor<8xf64>):
        // expected-error @below {{works on 'f64', which the runtime of this target has no function for; use f32}}
        %v = fsdp.square_sum %x : tensor<8xf64>
        fsdp.yield %v : tensor<f64>
      }
    }
  }
}

// -----

// An update that does not work in place.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.param @w : tensor<8xf32> unit "w" init <constant, 0.0>
  fsdp.storage @s : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "p" persistent holds @s "parameter" offset 128 : !fsdp.buffer<tensor<8xf32>>
    fsdp.segment @train train next [@train] {
      %g = fsdp.buffer "g" offset 192 : !fsdp.buffer<tensor<8xf32>>
      %lr = fsdp.buffer "lr" offset 256 : !fsdp.buffer<tensor<f32>>
      %ok = fsdp.buffer "ok" offset 320 : !fsdp.buffer<tensor<i1>>
      %t = fsdp.launch "update" on "compute" ins(%p, %g, %lr, %ok : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%g : !fsdp.buffer<tensor<8xf32>>) step_state(%s : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>, %l: tensor<f32>, %k: tensor<i1>):
        %one = arith.constant dense<1.0> : tensor<f32>
        // expected-error @below {{does not work in place; give parameter and states the same buffers in ins and outs}}
        %u = fsdp.optimizer_step <sgd, lr = 0.1> @s %a, %b states() lr %l scale %one if %k : tensor<8xf32> states 0
        fsdp.yield %u : tensor<8xf32>
      }
    }
  }
}

// -----

// Two outputs of one name would be one number of the log.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "one" on "compute" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "accuracy" %v
        fsdp.yield
      }
      %t1 = fsdp.launch "two" on "compute" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        // expected-error @below {{'accuracy' is written twice in a segment; give each its own name}}
        fsdp.output "accuracy" %v
        fsdp.yield
      }
    }
  }
}

// -----

// A segment of two walks whose outputs have other numbers in the one than in the other.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.walk @long train [@one, @two] times [1, 1]
    fsdp.walk @short train [@two] times [1]
    fsdp.segment @one train next [@two] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "one" on "compute" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "accuracy" %v
        fsdp.yield
      }
    }
    // expected-error @below {{'two' writes outputs in several walks, whose other segments write different ones; give each walk a separate segment}}
    fsdp.segment @two train next [@one, @two] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "two" on "compute" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "loss" %v
        fsdp.yield
      }
    }
  }
}

// -----

// Which of two walks is the driver's step?
module attributes {fsdp.phase = "scheduled"} {
  // expected-error @below {{has the walks 'long' and 'short', which both train, expected one; a step of the driver has one walk, remove the other}}
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.walk @long train [@one, @two] times [1, 1]
    fsdp.walk @short train [@two] times [1]
    fsdp.segment @one train next [@two] {
    }
    fsdp.segment @two train next [@one, @two] {
    }
  }
}

// -----

// A number where a sum and its weight belong, and the other way round.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @evaluate evaluate next [@evaluate] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<f32>>
      %t = fsdp.launch "loss" on "compute" ins(%a : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<f32>):
        // expected-error @below {{is in a segment that evaluates, expected 'fsdp.output_sum'}}
        fsdp.output "loss" %x
        fsdp.yield
      }
    }
  }
}

// -----

module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<f64>>
      %t = fsdp.launch "loss" on "compute" ins(%a : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%x: tensor<f64>):
        // expected-error @below {{is in a segment that trains, expected 'fsdp.output'}}
        fsdp.output_sum "loss" %x over %x
        fsdp.yield
      }
    }
  }
}
