// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// input C1: shard_of and over, ceil-divided.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  // expected-error @below {{holds 2 samples, expected 3 (10 over 4 ranks)}}
  %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<2x64xf32>
}

// -----

fsdp.step @eval evaluate {
  // expected-error @below {{needs both 'shard_of' and 'over', or neither}}
  %x = "fsdp.input"() {name = "x", sample_dim = 0 : i64, global_batch = 10 : i64} : () -> tensor<2xf32>
}

// -----

// Inputs of tokens say how large their vocabulary is, and are samples by positions.

fsdp.step @eval evaluate {
  // expected-error @below {{got 'fsdp.tokens' 0 : i64, expected the size of the vocabulary}}
  %x = fsdp.input "x" sample_dim 0 {fsdp.tokens = 0} : tensor<2x4xi32>
}

// -----

fsdp.step @eval evaluate {
  // expected-error @below {{takes tokens, got 'tensor<2x4xf32>' with samples along dimension 0, expected integers in samples by positions}}
  %x = fsdp.input "x" sample_dim 0 {fsdp.targets = 10} : tensor<2x4xf32>
}

// -----

fsdp.step @eval evaluate {
  // expected-error @below {{takes tokens, got 'tensor<2x4xi32>' with samples along dimension 1, expected integers in samples by positions}}
  %x = fsdp.input "x" sample_dim 1 {fsdp.tokens = 10} : tensor<2x4xi32>
}

// -----

// input C4: microbatches are at least 1 and given with shard_of.
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is one of 2 microbatches, expected at least 1, with 'shard_of'}}
    %x = fsdp.input "x" sample_dim 0 microbatches 2 : tensor<3x64xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is one of 0 microbatches, expected at least 1, with 'shard_of'}}
    %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 0 : tensor<3x64xf32>
  }
}

// -----

// input C5: the number is that of one of the microbatches, which are given.
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is 'at' microbatch 2, expected 0 to 1, as there are 2 microbatches}}
    %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] microbatches 2 at 2 : tensor<2x64xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is 'at' microbatch 1, but has no 'microbatches'; give both or neither}}
    %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] at 1 : tensor<3x64xf32>
  }
}

// -----

// input C2: the sample dimension exists.

fsdp.step @eval evaluate {
  // expected-error @below {{counts samples along dimension 2, expected a dimension below 2}}
  %x = fsdp.input "x" sample_dim 2 : tensor<2x64xf32>
}

// -----

// input C2: a batch has samples.

fsdp.step @eval evaluate {
  // expected-error @below {{holds 0 samples, expected at least 1}}
  %x = fsdp.input "x" sample_dim 0 : tensor<0x3xf32>
}

// -----

// read C1.

fsdp.step @eval evaluate {
  // expected-error @below {{names 'w', which is not a parameter}}
  %w = fsdp.read @w : tensor<4xf32>
}

// -----

// expected-note @below {{the parameter is declared here}}
fsdp.param @w : tensor<5xf32> unit "u" init <constant, 0.0>
fsdp.step @eval evaluate {
  // expected-error @below {{has type 'tensor<4xf32>', expected 'tensor<5xf32>', the type of parameter 'w'}}
  %w = fsdp.read @w : tensor<4xf32>
}

// -----

// A placement says in which type a parameter is read, and in which its gradient is.

fsdp.mesh @mesh <["fsdp"=2]>
// expected-note @below {{the parameter is declared here}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = bf16, reduce = f32, reshard = always>
fsdp.step @eval evaluate {
  // expected-error @below {{has type 'tensor<4xf32>', expected 'tensor<4xbf16>', the type in which the placement gathers parameter 'w'}}
  %w = fsdp.read @w : tensor<4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-note @below {{the parameter is declared here}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = bf16, reduce = bf16, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error @below {{has type 'tensor<4xf32>', expected 'tensor<4xbf16>', the type in which the placement reduces parameter 'w'}}
  fsdp.gradient @w, %g : tensor<4xf32>
}

// -----

// loss C1: exactly one.

fsdp.step @eval evaluate {
  %c = arith.constant dense<1.0> : tensor<f64>
  // expected-note @below {{the first loss is here}}
  fsdp.loss %c over %c
  // expected-error @below {{appears twice in a step; add the losses first}}
  fsdp.loss %c over %c
}

// -----

// global_norm C1.

fsdp.step @eval evaluate {
  %g = arith.constant dense<1.0> : tensor<3xf32>
  // expected-error @below {{has 1 gradients, expected 2 (one for each parameter)}}
  %n = fsdp.global_norm [@a, @b] %g : tensor<3xf32>
}

// -----

// constraint C1: rank, axes, no partial sums.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has a sharding of 1 dimensions, expected 2}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{cannot request partial sums; leave 'unreduced' out}}
  %y = fsdp.constraint %x <@mesh, [{}, {}], unreduced = {"fsdp"}> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{names axis 'tensor', which the mesh lacks}}
  %y = fsdp.constraint %x <@mesh, [{"tensor"}, {}]> : tensor<8x4xf32>
}

// -----

// constraint C2: priorities.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has 1 priorities, expected 2 (one for each dimension)}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {}]> priorities [1] : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has priority 1001 for dimension 0, expected 0 to 1000}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {}]> priorities [1001, 0] : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has priority -1 for dimension 1, expected 0 to 1000}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {?}]> priorities [1, -1] : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has priority 1 for dimension 1, a closed dimension without axes; use 0}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {}]> priorities [0, 1] : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has priorities that are all 0; leave 'priorities' out}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {}]> priorities [0, 0] : tensor<8x4xf32>
}

// -----

// constraint C3: the positions alone.

fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has 'sequence_parallel', expected axes for one dimension, the positions}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {"tensor"}]> {sequence_parallel} : tensor<8x4xf32>
}

// -----

// reshard C1: rank, axes, no partial sums, closed.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has a sharding of 1 dimensions, expected 2}}
  %y = fsdp.reshard %x <@mesh, [{"fsdp"}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{cannot request partial sums; leave 'unreduced' out}}
  %y = fsdp.reshard %x <@mesh, [{}, {}], unreduced = {"fsdp"}> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{names axis 'tensor', which the mesh lacks}}
  %y = fsdp.reshard %x <@mesh, [{"tensor"}, {}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{has an open dimension; leave '?' out to close it}}
  %y = fsdp.reshard %x <@mesh, [{"fsdp"}, {?}]> : tensor<8x4xf32>
}

// -----

fsdp.step @eval evaluate {
  %s = arith.constant dense<1.0> : tensor<f64>
  %n = arith.constant dense<0.0> : tensor<f64>
  // expected-error @below {{has a weight of 0.000000e+00, expected a finite number above 0}}
  fsdp.loss %s over %n
}

// -----

fsdp.step @eval evaluate {
  %s = arith.constant dense<1.0> : tensor<f64>
  %n = arith.constant dense<-2.0> : tensor<f64>
  // expected-error @below {{has a weight of -2.000000e+00, expected a finite number above 0}}
  fsdp.metric "m" %s over %n
}

// -----

fsdp.step @eval evaluate {
  %s = arith.constant dense<1.0> : tensor<f64>
  %n = arith.constant dense<0x7FF0000000000000> : tensor<f64>
  // expected-error @below {{has a weight of INF, expected a finite number above 0}}
  fsdp.loss %s over %n
}

// -----

// constraint C1: parts of axes of the mesh, which divide them.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{names 'fsdp:(1)3', 3 positions after the first 1 of axis 'fsdp' of size 4; expected numbers whose product divides that size}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp:(1)3"}, {}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{names 'fsdp:(2)4', 4 positions after the first 2 of axis 'fsdp' of size 4}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp:(2)4"}, {}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{names axis 'rows:(1)2', which the mesh lacks}}
  %y = fsdp.constraint %x <@mesh, [{"rows:(1)2"}, {}]> : tensor<8x4xf32>
}

// -----

// reshard C1: likewise.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{names axis 'fsdp:x', which the mesh lacks}}
  %y = fsdp.reshard %x <@mesh, [{"fsdp:x"}, {}]> : tensor<8x4xf32>
}
