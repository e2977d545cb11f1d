// Storages that some roles own: what the verifier refuses.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// (C6) A role is a program.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  // expected-error @below {{is kept by 'w', which is not an 'fsdp.program'}}
  fsdp.storage @u : tensor<4xf32> replicated over [] roles [@w] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
  }
}

// -----

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=3]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  // expected-error @below {{names role 'first' twice}}
  fsdp.storage @u : tensor<4xf32> replicated over [] roles [@first, @first] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
  }
  fsdp.program @third role {pipeline = 2 : i64} {
  }
}

// -----

// A storage of all ranks has one spelling.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  // expected-error @below {{names 2 of 2 programs in 'roles', expected some of them; leave it out for a storage of all ranks}}
  fsdp.storage @u : tensor<4xf32> replicated over [] roles [@first, @second] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
  }
}

// -----

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  // expected-error @below {{names 0 of 2 programs in 'roles', expected some of them}}
  fsdp.storage @u : tensor<4xf32> replicated over [] roles [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
  }
}

// -----

// (C6) Other programs have no part of it.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=3]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  fsdp.storage @u : tensor<4xf32> replicated over [] roles [@first, @third] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      // expected-error @below {{is in program 'second' and names storage 'u', which only 'first', 'third' keeps; name the program in its 'roles', or let a rank that keeps the storage send the values}}
      %w = fsdp.load @u "parameter" : tensor<4xf32>
    }
  }
  fsdp.program @third role {pipeline = 2 : i64} {
  }
}

// -----

// The same in the scheduled phase.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  fsdp.storage @u : tensor<4xf32> replicated over [] roles [@first] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    // expected-error @below {{is in program 'second' and names storage 'u', which only 'first' keeps}}
    %w = fsdp.buffer "u.parameter" persistent holds @u "parameter" : !fsdp.buffer<tensor<4xf32>>
  }
}

// -----

// (C7) Its parts are on ranks of one role.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
  // expected-error @below {{has 'roles' and is split over axis 'pipeline', along which ranks have different roles; split it over other axes}}
  fsdp.storage @u : tensor<2xf32> flat over ["pipeline"] roles [@first] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
  }
  fsdp.program @second role {pipeline = 1 : i64} {
  }
}
