// What propagation wrote is checked: axes of a region split nothing in it, and split what leaves it as the op says.
// RUN: fsdp-opt %s --split-input-file --fsdp-partition --verify-diagnostics

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]} : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {}]>]} : tensor<8x4xf32> -> tensor<4x4xf32>
  // expected-error @below {{'math.tanh' op has a sharding that splits dimension 1 over axis "fsdp", over which it is in local terms, expected other axes}}
  %t = math.tanh %own {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]} : tensor<4x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]} : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {}]>]} : tensor<8x4xf32> -> tensor<4x4xf32>
  // expected-error @below {{'fsdp.exit_manual' op has a sharding that splits dimension 0 of result #0, which this op cannot produce}}
  %y = fsdp.exit_manual %own <@mesh, [{"fsdp"}, {}]> over ["fsdp"] {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {}]>]} : tensor<4x4xf32> -> tensor<8x4xf32>
}

// -----

// Microbatches split samples that the region splits otherwise.
fsdp.mesh @mesh <["fsdp"=2, "microbatch"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]} : tensor<8x4xf32>
  %own = fsdp.enter_manual %x <@mesh, [{"fsdp"}, {}]> over ["fsdp"] {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {}]>]} : tensor<8x4xf32> -> tensor<4x4xf32>
  // expected-error @below {{a manual region splits the samples of dimension 0 of its result over 'fsdp', across the microbatches of a step; train without gradient accumulation}}
  %y = fsdp.exit_manual %own <@mesh, [{"fsdp"}, {}]> over ["fsdp"] {fsdp.shardings = [#fsdp.sharding<@mesh, [{"microbatch"}, {}]>]} : tensor<4x4xf32> -> tensor<8x4xf32>
}
