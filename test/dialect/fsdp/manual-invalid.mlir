// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// C1: a region is over some axis.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op is over no axes, expected at least one}}
  %y = fsdp.manual(%x) over [] in [#fsdp.sharding<@mesh, [{}, {}]>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    fsdp.yield %own : tensor<8x4xf32>
  }
}

// -----

// C1: axes are of the mesh.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op is over axis 'pipeline'}}
  %y = fsdp.manual(%x) over ["pipeline"] in [#fsdp.sharding<@mesh, [{"pipeline"}, {}]>] out [#fsdp.sharding<@mesh, [{"pipeline"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C1: regions nest over different axes.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-note @below {{the region around it is here}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{op is over axis "fsdp", which is manual already; leave it out, and use the collectives over it here}}
    %inner = fsdp.manual(%own) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
        : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%part: tensor<2x4xf32>):
      fsdp.yield %part : tensor<2x4xf32>
    }
    fsdp.yield %inner : tensor<4x4xf32>
  }
}

// -----

// C2: a sharding for each operand.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has 2 shardings for 1 operands, expected one for each}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C2: a sharding for each result.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has 2 shardings for 1 results, expected one for each}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C2: of the rank of the value.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has a sharding of 1 dimensions for operand #0 of type 'tensor<8x4xf32>', expected 2}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C2: closed.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has an open dimension in the sharding of operand #0; leave '?' out: other axes are propagated in any case}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp", ?}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C2: over axes of the region.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has a sharding of operand #0 over axis "tensor", expected axes in 'over', ["fsdp"]; other axes are propagated}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {"tensor"}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C2: parts are equal.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op splits dimension 1 of result #0, of size 7, over 2 ranks, expected a multiple; pad it, or use a mesh that divides it}}
  %y = fsdp.manual(%x) over ["fsdp", "tensor"] in [#fsdp.sharding<@mesh, [{}, {}]>] out [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]
      : (tensor<8x4xf32>) -> tensor<8x7xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    fsdp.yield %own : tensor<8x4xf32>
  }
}

// -----

// C2: sums are of floats.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %i = fsdp.input "i" sample_dim 0 : tensor<8x4xi32>
  // expected-error @below {{op has integers that are partial sums over axis "fsdp" in operand #0, expected floats}}
  %y = fsdp.manual(%i) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xi32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xi32>):
    %t = arith.sitofp %own : tensor<8x4xi32> to tensor<8x4xf32>
    %s = fsdp.psum %t over ["fsdp"] : tensor<8x4xf32>
    fsdp.yield %s : tensor<8x4xf32>
  }
}

// -----

// C3: one argument for each operand.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has a body with 0 arguments, expected 1, one for each operand}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    %own = arith.constant dense<0.0> : tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C3: arguments have local types.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has 'tensor<8x4xf32>' as the part of one rank of operand #0, expected 'tensor<4x4xf32>'}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    fsdp.yield %own : tensor<8x4xf32>
  }
}

// -----

// C3: results have local types.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op has 'tensor<4x4xf32>' as the part of one rank of result #0, expected 'tensor<2x4xf32>'}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C3: one yielded value for each result.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op yields 0 values, expected 1, one for each result}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    fsdp.yield
  }
}

// -----

// C4: what reads or counts is outside.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.dropout' op is in 'fsdp.manual', expected computation, the collectives of a region, or another region; pass what it reads as an operand, and use it outside}}
    %d = fsdp.dropout %own rate 1.0e-01 name "d" : tensor<4x4xf32>
    fsdp.yield %d : tensor<4x4xf32>
  }
}

// -----

// C4: collectives are over axes of the region.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-note @below {{the region is here}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.psum' op is over axis "tensor", expected axes of its region}}
    %s = fsdp.psum %own over ["tensor"] : tensor<4x4xf32>
    fsdp.yield %s : tensor<4x4xf32>
  }
}

// -----

// C4: so is an index.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.axis_index' op is over axis "tensor", expected axes of its region}}
    %i = fsdp.axis_index over ["tensor"]
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// C5: what varies is not replicated.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op returns a value that is varying over axis "fsdp" as result #0, which is replicated over it, expected an invariant value; use 'fsdp.psum', or split the result}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-note @below {{the value is computed here}}
    %t = math.tanh %own : tensor<4x4xf32>
    fsdp.yield %t : tensor<4x4xf32>
  }
}

// -----

// C5: nor is a sum that is not formed.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op returns a value that is partial over axis "fsdp" as result #0, which is replicated over it, expected an invariant value; use 'fsdp.psum', or return it as unreduced}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    // expected-note @below {{the value is computed here}}
    %t = arith.addf %own, %own : tensor<8x4xf32>
    fsdp.yield %t : tensor<8x4xf32>
  }
}

// -----

// C5: nor is it split.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op returns a value that is partial over axis "fsdp" as result #0, which is split over it, expected a sum that is formed; use 'fsdp.psum_scatter', or return it as unreduced}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<16x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    // expected-note @below {{the value is computed here}}
    %t = arith.addf %own, %own : tensor<8x4xf32>
    fsdp.yield %t : tensor<8x4xf32>
  }
}

// -----

// C5: what is equal on all ranks is not the term of a sum.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{op returns a value that is invariant over axis "fsdp" as result #0, which is unreduced over it and would count it once for each rank; leave 'unreduced' out}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}]>] out [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    // expected-note @below {{the value is computed here}}
    %t = math.tanh %own : tensor<8x4xf32>
    fsdp.yield %t : tensor<8x4xf32>
  }
}

// -----

// C6: an op that is not linear.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-note @below {{the operand is computed here}}
  ^bb0(%own: tensor<8x4xf32>):
    // expected-error @below {{'math.exp' op has an operand #0 that is partial over axis "fsdp", in which it is not additive, expected a value that is complete; use 'fsdp.psum' first}}
    %e = math.exp %own : tensor<8x4xf32>
    fsdp.yield %e : tensor<8x4xf32>
  }
}

// -----

// C6: a product of two sums.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-note @below {{the operand is computed here}}
  ^bb0(%own: tensor<8x4xf32>):
    // expected-error @below {{'arith.mulf' op has an operand #0 that is partial over axis "fsdp", in which it is not additive, expected a value that is complete; use 'fsdp.psum' first}}
    %e = arith.mulf %own, %own : tensor<8x4xf32>
    fsdp.yield %e : tensor<8x4xf32>
  }
}

// -----

// C6: a sum with an invariant value.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-note @below {{the operand is computed here}}
  ^bb0(%own: tensor<8x4xf32>):
    %one = arith.constant dense<1.0> : tensor<8x4xf32>
    // expected-error @below {{'arith.addf' op has an operand #0 that is partial over axis "fsdp" beside an invariant one, which would count once for each rank; use 'fsdp.psum' first}}
    %e = arith.addf %own, %one : tensor<8x4xf32>
    fsdp.yield %e : tensor<8x4xf32>
  }
}

// -----

// C6: a product with a varying value.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    %i = fsdp.axis_index over ["fsdp"]
    %f = arith.sitofp %i : tensor<i64> to tensor<f32>
    // expected-note @below {{the operand is computed here}}
    %r = nn.repeat "-> a b" %f : tensor<f32> -> tensor<8x4xf32>
    // expected-error @below {{'arith.mulf' op has an operand #0 that is partial over axis "fsdp" beside a varying one, expected invariant operands; use 'fsdp.psum' first}}
    %e = arith.mulf %own, %r : tensor<8x4xf32>
    fsdp.yield %e : tensor<8x4xf32>
  }
}

// -----

// A collective takes no partial sum but to form it.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    // expected-error @below {{'fsdp.pgather' op has an operand that is partial over axis "fsdp", expected a varying one; use 'fsdp.psum' or 'fsdp.psum_scatter' first}}
    %e = fsdp.pgather %own dim 0 over ["fsdp"] : tensor<8x4xf32> -> tensor<16x4xf32>
    fsdp.yield %own : tensor<8x4xf32>
  }
}

// -----

// A maximum is not linear in the terms over other axes.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp", "tensor"] in [#fsdp.sharding<@mesh, [{}, {}], unreduced = {"fsdp"}>] out [#fsdp.sharding<@mesh, [{}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<8x4xf32>):
    // expected-error @below {{'fsdp.pmax' op has an operand that is partial over axis "fsdp", in which it is not additive; use 'fsdp.psum' first}}
    %e = fsdp.pmax %own over ["tensor"] : tensor<8x4xf32>
    fsdp.yield %e : tensor<8x4xf32>
  }
}

// -----

// pvary takes an invariant value.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.pvary' op has an operand that is varying over axis "fsdp", expected an invariant one; use it as it is}}
    %e = fsdp.pvary %own over ["fsdp"] : tensor<4x4xf32>
    fsdp.yield %e : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.pgather' op produces 'tensor<4x4xf32>' from 'tensor<4x4xf32>', expected 'tensor<8x4xf32>'}}
    %e = fsdp.pgather %own dim 0 over ["fsdp"] : tensor<4x4xf32> -> tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.pgather' op names dimension 2 of 'tensor<4x4xf32>', expected a dimension below 2}}
    %e = fsdp.pgather %own dim 2 over ["fsdp"] : tensor<4x4xf32> -> tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.psum_scatter' op produces 'tensor<4x4xf32>' from 'tensor<4x4xf32>', expected 'tensor<4x2xf32>'}}
    %e = fsdp.psum_scatter %own dim 1 over ["fsdp"] : tensor<4x4xf32> -> tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.pswap' op cuts and joins along dimension 1, expected different dimensions; use 'fsdp.ppermute'}}
    %e = fsdp.pswap %own split 1 concat 1 over ["fsdp"] : tensor<4x4xf32> -> tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.ppermute' op has 1 sources, expected one for each of 2 ranks; -1 means none}}
    %e = fsdp.ppermute %own from [0] over ["fsdp"] : tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.ppermute' op receives from rank 2, expected -1 or a rank below 2}}
    %e = fsdp.ppermute %own from [0, 2] over ["fsdp"] : tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// Types and arguments of collectives.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-error @below {{'fsdp.ppermute' op receives from rank 1 twice, expected each rank at most once}}
    %e = fsdp.ppermute %own from [1, 1] over ["fsdp"] : tensor<4x4xf32>
    fsdp.yield %own : tensor<4x4xf32>
  }
}

// -----

// A part that does not exist.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<4x4xf32>
  %t = nn.slice %own dim 1 start 0 : tensor<4x4xf32> -> tensor<4x3xf32>
  // expected-error @below {{'fsdp.psum_scatter' op cuts dimension 1 of 'tensor<4x3xf32>' into 2 parts, one for each rank, expected a multiple}}
  %s = fsdp.psum_scatter %t dim 1 over ["fsdp"] : tensor<4x3xf32> -> tensor<4x1xf32>
}

// -----

// The boundary has the types of its sharding.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{'fsdp.enter_manual' op has 'tensor<8x4xf32>' as the part of one rank of the operand, expected 'tensor<4x4xf32>'}}
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<8x4xf32>
}

// -----

// So where it is left.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] : tensor<8x4xf32> -> tensor<4x4xf32>
  // expected-error @below {{'fsdp.exit_manual' op has 'tensor<4x4xf32>' as the part of one rank of the result, expected 'tensor<8x4xf32>'}}
  %y = fsdp.exit_manual %own <@mesh, [{}, {}]> over ["fsdp"] : tensor<4x4xf32> -> tensor<8x4xf32>
}

// -----

// The boundary of a region names its axes.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{'fsdp.constraint' op names axis "tensor", expected axes in 'manual', ["fsdp"]}}
  %c = fsdp.constraint %x <@mesh, [{?}, {"tensor", ?}]> {manual = ["fsdp"]} : tensor<8x4xf32>
}

// -----

// Arguments are tensors.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %one = arith.constant dense<1.0> : tensor<8x4xf32>
  // expected-error @below {{op has an argument of type 'f32', expected a tensor}}
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: f32):
    %two = arith.constant dense<1.0> : tensor<4x4xf32>
    fsdp.yield %two : tensor<4x4xf32>
  }
}
