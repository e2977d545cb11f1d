// RUN: split-file %s %t
// RUN: not fsdp-opt %t/placement.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=PLACEMENT
// RUN: not fsdp-opt %t/precision.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not fsdp-opt %t/elements.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=ELEMENTS
// RUN: not fsdp-opt %t/loss.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not fsdp-opt %t/checkpoint.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=CHECKPOINT
// RUN: not fsdp-opt %t/gradient.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=GRADIENT
// RUN: not fsdp-opt %t/part.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not fsdp-opt %t/differs.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=DIFFERS
// RUN: not fsdp-opt %t/twice.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fsdp-opt %t/after.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: not fsdp-opt %t/states.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=STATES
// RUN: not fsdp-opt %t/missing.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not fsdp-opt %t/rank.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not fsdp-opt %t/axis.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not fsdp-opt %t/whole.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not fsdp-opt %t/partial.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=PARTIAL
// RUN: not fsdp-opt %t/empty.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not fsdp-opt %t/dims.mlir --fsdp-propagate --fsdp-partition 2>&1 | FileCheck %s --check-prefix=DIMS
// RUN: not fsdp-opt %t/local.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=LOCAL

//--- placement.mlir
// PLACEMENT: error: 'fsdp.param' op has no placement; run --fsdp-shard-parameters first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
fsdp.step @evaluate evaluate {
}

//--- precision.mlir
// PRECISION: error: 'fsdp.param' op has placement #fsdp.placement<replicated, gather = bf16, reduce = f32, reshard = always>, expected #fsdp.placement<replicated, gather = f32, reduce = f32, reshard = always> like 'w', which shares unit 'u'; put them into different units
// PRECISION: note: the other parameter is here
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <replicated, gather = f32, reduce = f32, reshard = always>
fsdp.param @v : tensor<8xf32> unit "u" init <constant, 0.0> placement <replicated, gather = bf16, reduce = f32, reshard = always>
fsdp.step @evaluate evaluate {
}

//--- elements.mlir
// ELEMENTS: error: 'fsdp.param' op of element type 'f64' shares unit 'u' with 'w' of element type 'f32'; put them into different units
// ELEMENTS: note: the other parameter is here
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <replicated, gather = f32, reduce = f32, reshard = always>
fsdp.param @v : tensor<8xf64> unit "u" init <constant, 0.0> placement <replicated, gather = f64, reduce = f64, reshard = always>
fsdp.step @evaluate evaluate {
}

//--- loss.mlir
// LOSS: error: 'fsdp.loss' op must be lowered before --fsdp-partition; run --fsdp-differentiate first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %one over %one
}

//--- checkpoint.mlir
// CHECKPOINT: error: 'fsdp.checkpoint' op must be lowered before --fsdp-partition; run --fsdp-differentiate first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  fsdp.checkpoint full {
  }
}

//--- gradient.mlir
// GRADIENT: error: 'fsdp.gradient' op must be lowered before --fsdp-partition; run --fsdp-apply-optimizer first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  fsdp.gradient @w, %g : tensor<8xf32>
}

//--- part.mlir
// A parameter that another step updates is missing from the updates of this one.
// PART: error: 'fsdp.update' op updates unit 'u' without its parameter 'w'; update it in the same step or give it another unit
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @v : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.step @first train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @w, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
  fsdp.update @v, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
}
fsdp.step @second train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @v, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
}

//--- differs.mlir
// DIFFERS: error: 'fsdp.update' op updates 'v' with another rule, rate, scale or condition than 'w', which shares unit 'u'; put them into different units
// DIFFERS: note: the other update is here
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.param @v : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %half = arith.constant dense<0.5> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @w, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
  fsdp.update @v, %g lr %half scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
}

//--- twice.mlir
// TWICE: error: 'fsdp.update' op updates 'w' a second time; update a parameter once in a step
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @w, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
  fsdp.update @w, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
}

//--- after.mlir
// AFTER: error: 'fsdp.read' op of 'w' is used after an update of its unit 'u'; use parameters before the updates of a step
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @w, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
  %w = fsdp.read @w : tensor<8xf32>
  %y = arith.negf %w : tensor<8xf32>
}

//--- states.mlir
// STATES: error: 'fsdp.update' op has different optimizer states for 'w' than another update; use optimizers with the same states
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.step @first train optimizer <sgd, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @w, %g lr %lr scale %lr if %ok <sgd, lr = 0.1> : tensor<8xf32>
}
fsdp.step @second train optimizer <adam, lr = 0.1> {
  %g = arith.constant dense<1.0> : tensor<8xf32>
  %lr = arith.constant dense<1.0> : tensor<f32>
  %ok = arith.constant dense<true> : tensor<i1>
  fsdp.update @w, %g lr %lr scale %lr if %ok <adam, lr = 0.1> : tensor<8xf32>
}

//--- missing.mlir
// MISSING: error: 'fsdp.input' op has no sharding for each of its 1 results; run --fsdp-propagate first
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
}

//--- rank.mlir
// RANK: error: 'fsdp.input' op has a sharding of 2 dimensions for result #0, expected 1
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]} : tensor<8xf32>
}

//--- axis.mlir
// AXIS: error: 'fsdp.input' op has a sharding over axis 'data', which the mesh lacks
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"data"}]>]} : tensor<8xf32>
}

//--- whole.mlir
// WHOLE: error: 'fsdp.input' op has a sharding that splits dimension 1 of result #0, which this op cannot produce
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {"fsdp"}]>]} : tensor<8x4xf32>
}

//--- partial.mlir
// PARTIAL: error: 'nn.reduce' op has a sharding with partial results over {}, expected {fsdp}
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 {fsdp.shardings = [#fsdp.sharding<@mesh, [{"fsdp"}]>]} : tensor<8xf32>
  %s = nn.reduce sum "b ->" %x {fsdp.shardings = [#fsdp.sharding<@mesh, []>]} : tensor<8xf32> -> tensor<f64>
}

//--- empty.mlir
// EMPTY: error: module has no 'fsdp.step' to partition
fsdp.mesh @mesh <["fsdp"=2]>

//--- local.mlir
// LOCAL: error: module is in the local phase, expected global; partition a module once
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
}

//--- dims.mlir
// DIMS: error: 'fsdp.constraint' takes 'x' in another sharding, but the shardings split 10 dimensions, expected 8 at most; train on a mesh of fewer axes, or split the value alike in both places
fsdp.mesh @mesh <["a"=2, "b"=2, "c"=2, "d"=2, "e"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<2x2x2x2x2x2x2x2x2x2xf32> loc("x")
  %y = fsdp.constraint %x <@mesh, [{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {}, {}, {}, {}, {}]> : tensor<2x2x2x2x2x2x2x2x2x2xf32> loc("x")
  %z = fsdp.constraint %y <@mesh, [{}, {}, {}, {}, {}, {"a"}, {"b"}, {"c"}, {"d"}, {"e"}]> : tensor<2x2x2x2x2x2x2x2x2x2xf32>
  %s = nn.reduce sum "a b c d e f g h i j ->" %z : tensor<2x2x2x2x2x2x2x2x2x2xf32> -> tensor<f64>
}
