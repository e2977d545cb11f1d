// RUN: fsdp-opt %s --split-input-file --fsdp-split-stages --verify-diagnostics

// Each rank along the axis has a stage.
// expected-error @below {{the module has 0 stages, expected 2 to 2048, at least one for each rank along axis 'pipeline'; run 'fsdp-assign-stages' before differentiation}}
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<2xf32>
      fsdp.carry_store %y, @sum : tensor<2xf32>
    }
  }
  fsdp.carried @sum : tensor<2xf32>
}

// -----

// What one stage carries another one does not.
module attributes {fsdp.phase = "local", fsdp.stages = 2 : i64} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.carried @sum : tensor<2xf32>
  fsdp.program @all role {} {
    fsdp.segment @first train next [@last] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<2xf32>
      fsdp.carry_store %y, @sum : tensor<2xf32>
    }
    fsdp.segment @last train next [@first] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"b" stage 1>} : tensor<2xf32>
      // expected-error @below {{'fsdp.carry_store' op carries 'sum' in stage 1, expected stage 0 as in another segment}}
      fsdp.carry_store %y, @sum : tensor<2xf32>
    }
  }
}

// -----

// expected-error @below {{divides the local phase into stages, got the global phase; run 'fsdp-partition' first}}
module {
  fsdp.mesh @mesh <["pipeline"=2]>
}

// -----

module attributes {fsdp.phase = "local", fsdp.stages = 2 : i64} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      // expected-error @below {{'math.tanh' op has stage 2, expected stages below 2, as many as 'fsdp-assign-stages' has made}}
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"a" stage 2>} : tensor<2xf32>
    }
  }
}

// -----

// Forward passes to later stages.
module attributes {fsdp.phase = "local", fsdp.stages = 2 : i64} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      // expected-note @below {{the operand}}
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"a" stage 1>} : tensor<2xf32>
      // expected-error @below {{'math.exp' op of forward has stage 0, expected stage 1 or a later one, as an operand has stage 1; number stages in the order of forward}}
      %z = math.exp %y {fsdp.structure = #fsdp.structure<"b">} : tensor<2xf32>
    }
  }
}

// -----

// A stage without ops, which passes may leave, compiles.
// expected-warning @below {{stage 1 of 3 computes nothing in training: its rank passes values on; give it another unit, or the mesh fewer ranks along the axis of the stages}}
module attributes {fsdp.phase = "local", fsdp.stages = 3 : i64} {
  fsdp.mesh @mesh <["pipeline"=3]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<2xf32>
      %z = math.exp %y {fsdp.structure = #fsdp.structure<"b" stage 2>} : tensor<2xf32>
    }
  }
}
