// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// Ops stand in a container of their phase.

// expected-error @below {{'fsdp.input' op is in 'builtin.module', expected a step or a segment or a launch}}
%x = fsdp.input "x" sample_dim 0 : tensor<8xf32>

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-error @below {{'fsdp.all_gather' op is in 'fsdp.step', expected a segment or a launch}}
  %g = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
}

// -----

fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{'fsdp.read' op is in 'fsdp.segment', expected a step}}
    %w = fsdp.read @w : tensor<4xf32>
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %t = fsdp.launch "l" on "compute" {
      // expected-error @below {{'fsdp.buffer' op is in 'fsdp.launch', expected a program or a segment}}
      %b = fsdp.buffer "b" : !fsdp.buffer<tensor<4xf32>>
    }
  }
}

// -----

// expected-error @below {{'fsdp.launch' op is in 'builtin.module', expected a segment}}
%t = fsdp.launch "l" on "compute" {
}

// -----

fsdp.program @all role {} {
  // expected-error @below {{is in 'fsdp.program', which contains only buffers, events, walks and segments}}
  %c = arith.constant dense<1.0> : tensor<4xf32>
}

// -----

// Containers have no arguments, and see nothing of what stands around them.

// expected-error @below {{has a body with 1 arguments, expected none}}
fsdp.step @evaluate evaluate {
^bb0(%x: tensor<4xf32>):
}

// -----

%c = arith.constant dense<1.0> : tensor<f32>
// expected-note @below {{required by region isolation constraints}}
fsdp.step @evaluate evaluate {
  // expected-error @below {{using value defined outside the region}}
  fsdp.output "x" %c
}

// -----

// expected-note @below {{the first mesh is here}}
fsdp.mesh @one <["fsdp"=2]>
// expected-error @below {{appears twice in a module, expected one mesh}}
fsdp.mesh @two <["fsdp"=4]>

// -----

// expected-error @below {{has 'fsdp.phase' "lokal", expected "global", "local" or "scheduled" on a module}}
module attributes {fsdp.phase = "lokal"} {
}

// -----

// launch C3: operands are what the segment declares.

%p = builtin.unrealized_conversion_cast to !fsdp.buffer<tensor<4xf32>>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %b = builtin.unrealized_conversion_cast to !fsdp.buffer<tensor<4xf32>>
    // expected-error @below {{buffer operand must be an 'fsdp.buffer' or an 'fsdp.subview'}}
    %t = fsdp.launch "l" on "compute" ins(%b : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%x: tensor<4xf32>):
      fsdp.yield
    }
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %b = builtin.unrealized_conversion_cast to !fsdp.buffer<tensor<4xf32>>
    // expected-error @below {{operand must be an 'fsdp.buffer' or an 'fsdp.subview'}}
    %v = fsdp.subview %b at 0 : !fsdp.buffer<tensor<4xf32>> -> !fsdp.buffer<tensor<2xf32>>
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %d = builtin.unrealized_conversion_cast to !fsdp.timepoint
    // expected-error @below {{'wait' operand must be an 'fsdp.launch' or an 'fsdp.event'}}
    %t = fsdp.launch "l" on "compute" wait(%d) {
    }
  }
}

// -----

fsdp.program @all role {} {
  %s = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<4xi64>>
  fsdp.segment @train train next [@train] {
    // expected-error @below {{has a step state of 'tensor<4xi64>', expected 'tensor<16xi64>'}}
    %t = fsdp.launch "l" on "compute" step_state(%s : !fsdp.buffer<tensor<4xi64>>) {
    }
  }
}

// -----

// buffer C3: what it holds exists and has its type.

fsdp.program @all role {} {
  // expected-error @below {{names 's', which is not a storage}}
  %p = fsdp.buffer "p" persistent holds @s "parameter" : !fsdp.buffer<tensor<4xf32>>
}

// -----

fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.storage @s : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
fsdp.program @all role {} {
  // expected-error @below {{has type 'tensor<2xf32>', expected 'tensor<4xf32>', the type of 'parameter' of storage 's'}}
  %p = fsdp.buffer "p" persistent holds @s "parameter" : !fsdp.buffer<tensor<2xf32>>
}

// -----

// advance C1: nothing that depends on the step comes after it.

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ok = arith.constant dense<true> : tensor<i1>
  // expected-error @below {{precedes 'fsdp.learning_rate', which would read the state of the next step; move it after all other uses}}
  fsdp.advance if %ok
  // expected-note @below {{the op that must come first is here}}
  %lr = fsdp.learning_rate <sgd, lr = 0.1>
}

// -----

// global_norm C1: gradients are of their parameters.

fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<3xf32>
  // expected-error @below {{names 'w', which is not a parameter}}
  %n = fsdp.global_norm [@w] %g : tensor<3xf32>
}

// -----

fsdp.param @w : tensor<4xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<3xf32>
  // expected-error @below {{has a gradient of 'tensor<3xf32>' for parameter 'w' of 'tensor<4xf32>'}}
  %n = fsdp.global_norm [@w] %g : tensor<3xf32>
}
