// RUN: fsdp-opt %s --fsdp-pipeline-microbatches --verify-diagnostics

// Stages of `interleaved:2`, of which `1f1b` would run the first two.
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2]>
  fsdp.program @pipeline0 role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"a">} : tensor<2xf32>
      // expected-error @below {{'math.tanh' op has stage 2, expected stages below 2: --pipeline-schedule=1f1b gives each of 2 ranks 1; name the same schedule here as in 'fsdp-assign-stages'}}
      %z = math.tanh %y {fsdp.structure = #fsdp.structure<"b" stage 2>} : tensor<2xf32>
    }
  }
  fsdp.program @pipeline1 role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] : tensor<2xf32>
      %y = math.tanh %x {fsdp.structure = #fsdp.structure<"c" stage 1>} : tensor<2xf32>
    }
  }
}
