// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// structure C1: names of units.

// expected-error @below {{unit is empty; give it a name}}
module attributes {test.structure = #fsdp.structure<"">} {}

// -----

// expected-error @below {{unit 'h\090' cannot be printed, expected UTF-8 without control characters}}
module attributes {test.structure = #fsdp.structure<"h\090" backward>} {}

// -----

// structure C2: stages.

// expected-error @below {{stage is -1, expected 0 to 1048576}}
module attributes {test.structure = #fsdp.structure<"h.0" stage -1>} {}

// -----

// expected-error @below {{stage is 1048577, expected 0 to 1048576}}
module attributes {test.structure = #fsdp.structure<stage 1048577>} {}

// -----

// structure C3: what is meant without it.

// expected-error @below {{structure has only default values (no unit, forward, stage 0); leave it out}}
module attributes {test.structure = #fsdp.structure<>} {}

// -----

// expected-error @below {{structure has only default values}}
module attributes {test.structure = #fsdp.structure<forward stage 0>} {}

// -----

// structure C4: what is recomputed.

// expected-error @below {{a recomputed op is part of forward, expected backward}}
module attributes {test.structure = #fsdp.structure<"h.0" recomputed>} {}

// -----

// expected-error @below {{a recomputed op is part of update, expected backward}}
module attributes {test.structure = #fsdp.structure<"h.0" update recomputed>} {}

// -----

// It is a structure, on what computes in a step or segment.

fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-error @below {{has 'fsdp.structure' "h.0", expected a '#fsdp.structure'}}
  %y = arith.negf %x {fsdp.structure = "h.0"} : tensor<4xf32>
}

// -----

// expected-error @below {{has 'fsdp.structure', expected it only on computations in a step or segment; constants and the ops in a kernel have the structure of their users, launches have 'of'}}
fsdp.mesh @mesh <["fsdp"=4]> {fsdp.structure = #fsdp.structure<"h.0">}

// -----

fsdp.step @evaluate evaluate {
  // expected-error @below {{has 'fsdp.structure', expected it only on computations}}
  %x = arith.constant {fsdp.structure = #fsdp.structure<"h.0">} dense<1.0> : tensor<4xf32>
}

// -----

fsdp.program @all role {} {
  fsdp.segment @s train next [@s] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
    %y = nn.fused %x : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      // expected-error @below {{has 'fsdp.structure', expected it only on computations}}
      %n = arith.negf %a {fsdp.structure = #fsdp.structure<"h.0">} : tensor<4xf32>
      nn.yield %n : tensor<4xf32>
    }
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{has 'fsdp.structure', expected it only on computations}}
    %t = fsdp.launch "l" on "compute" attributes {fsdp.structure = #fsdp.structure<"h.0">} {
      fsdp.yield
    }
  }
}

// -----

// What is gathered or reduced is a storage, for a unit, in a segment.

fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  // expected-error @below {{has 'fsdp.gathers', expected it only on computations in a segment}}
  %y = arith.negf %x {fsdp.gathers = @u.flat, fsdp.structure = #fsdp.structure<"u">} : tensor<4xf32>
}

// -----

fsdp.program @all role {} {
  fsdp.segment @s train next [@s] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
    // expected-error @below {{has 'fsdp.reduces' "u.flat", expected the name of a storage}}
    %y = fsdp.flatten %x {fsdp.reduces = "u.flat", fsdp.structure = #fsdp.structure<"u">} : (tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @s train next [@s] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
    // expected-error @below {{has 'fsdp.reduces' @u.flat without a unit; name the unit in 'fsdp.structure'}}
    %y = fsdp.flatten %x {fsdp.reduces = @u.flat, fsdp.structure = #fsdp.structure<backward>} : (tensor<4xf32>) -> tensor<4xf32>
  }
}
