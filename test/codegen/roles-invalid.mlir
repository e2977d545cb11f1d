// Programs of several roles that do not make one job: what both the programs and the record refuse.
// RUN: fsdp-translate --fsdp-to-cpp --split-input-file --verify-diagnostics %s
// RUN: fsdp-translate --fsdp-to-record --split-input-file --verify-diagnostics %s

// The driver runs the steps of all roles together.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  // expected-note @below {{the first role is here}}
  fsdp.program @first role {pipeline = 0 : i64} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train, @evaluate] {
    }
    fsdp.segment @evaluate evaluate next [@train] {
    }
  }
  // expected-error @below {{'second' has steps [train], expected [evaluate, train] as in 'first'; ranks of all roles run the same steps, give each a segment}}
  fsdp.program @second role {pipeline = 1 : i64} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

// Whether a step was good is what its outputs say, on every rank.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  // expected-note @below {{the first role is here}}
  fsdp.program @first role {pipeline = 0 : i64} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %x = fsdp.buffer "x" persistent offset 256 : !fsdp.buffer<tensor<f32>>
    fsdp.segment @train train next [@train] {
      %t0 = fsdp.launch "loss" on "compute" ins(%x : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%v: tensor<f32>):
        fsdp.output "loss" %v
        fsdp.yield
      }
    }
  }
  // expected-error @below {{'second' has outputs of step 'train' [], expected [loss] as in 'first'; every rank acts on them, send them to each role}}
  fsdp.program @second role {pipeline = 1 : i64} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
    }
  }
}

// -----

module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @first role {pipeline = 0 : i64} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    // expected-error @below {{generates text in one of 2 roles, expected one role; compile for generation on a mesh whose ranks run one program}}
    fsdp.segment @decode decode next [@decode] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} arena 256 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @decode decode next [@decode] {
    }
  }
}
