// What the user may not have meant is a warning that says what it costs.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/contradiction.mlir --fsdp-propagate -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=CONTRADICTION
// RUN: fsdp-opt %t/replication.mlir --fsdp-propagate -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=REPLICATION
// RUN: fsdp-opt %t/samples.mlir --fsdp-propagate -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=SAMPLES
// RUN: fsdp-opt %t/samples.mlir --fsdp-propagate=accumulate=2 -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=MICROBATCHES
// RUN: fsdp-opt %t/gradient.mlir --fsdp-propagate -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=GRADIENT
// RUN: fsdp-opt %t/padding.mlir --fsdp-shard-parameters --fsdp-propagate -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=PADDING
// RUN: fsdp-opt %t/weights.mlir --fsdp-shard-parameters --fsdp-differentiate --fsdp-apply-optimizer --fsdp-propagate -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=WEIGHTS
// RUN: fsdp-opt %t/weights.mlir --fsdp-to-global=precision=bf16 -o /dev/null 2>&1 | %{plain} | FileCheck %s --check-prefix=CASTS

//--- contradiction.mlir
// CONTRADICTION: contradiction.mlir:8:8: warning: splits dimension 1 of 'x' over 'a', but another constraint splits it over 'b': the value is resharded between them; use one of them
// CONTRADICTION: contradiction.mlir:7:8: note: the other constraint is here
// CONTRADICTION-NOT: warning:
fsdp.mesh @mesh <["a"=2, "b"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32> loc("x")
  %p = fsdp.constraint %x <@mesh, [{}, {"b"}]> : tensor<4x8xf32>
  %q = fsdp.constraint %x <@mesh, [{}, {"a"}]> : tensor<4x8xf32>
  // An open dimension asks for nothing.
  %r = fsdp.constraint %x <@mesh, [{}, {?}]> : tensor<4x8xf32>
}

//--- replication.mlir
// A cut dimension must be whole.
// REPLICATION: warning: 'nn.slice' needs all of 'sums' on every rank, which gathers 96 bytes over 'a'; if intended, write constrain(sums, "_") at its definition
// REPLICATION-NOT: warning:
fsdp.mesh @mesh <["a"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x32xf32>
  %s = nn.reduce sum "b i -> i" %x : tensor<4x32xf32> -> tensor<32xf32> loc("sums")
  %c = fsdp.constraint %s <@mesh, [{"a"}]> : tensor<32xf32>
  %a = nn.slice %s dim 0 start 3 : tensor<32xf32> -> tensor<5xf32>
  // A reshard of the author's own is meant.
  %w = fsdp.reshard %c <@mesh, [{}]> : tensor<32xf32>
  %b = nn.slice %w dim 0 start 3 : tensor<32xf32> -> tensor<5xf32>
}

//--- samples.mlir
// Samples stay on their ranks; what another axis splits is gathered. A constraint asks for it.
// SAMPLES: warning: 'nn.slice' needs all of 'hidden' of a rank's samples, which gathers 96 bytes over 'tensor'; if intended, write constrain(hidden, "data+fsdp,_") at its definition
// SAMPLES-NOT: warning:
// MICROBATCHES: warning: 'nn.slice' needs all of 'hidden' of a rank's samples, which gathers 48 bytes over 'tensor'; if intended, write constrain(hidden, "data+fsdp,_") at its definition
// MICROBATCHES-NOT: warning:
fsdp.mesh @mesh <["data"=2, "fsdp"=2, "tensor"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<16x8xf32>
  %h = fsdp.constraint %x <@mesh, [{"data", "fsdp", ?}, {"tensor"}]> : tensor<16x8xf32> loc("hidden")
  %a = nn.slice %h dim 1 start 3 : tensor<16x8xf32> -> tensor<16x2xf32>
  %w = fsdp.constraint %h <@mesh, [{"data", "fsdp"}, {}]> : tensor<16x8xf32>
  %b = nn.slice %w dim 1 start 3 : tensor<16x8xf32> -> tensor<16x2xf32>
}

//--- gradient.mlir
// Of a gradient, the value that it is the gradient of is named; of a result without a name, the result; one element that other ranks pad is not worth a word.
// GRADIENT: gradient.mlir:10:8: warning: 'nn.slice' needs all of 'x.grad' on every rank, which gathers 96 bytes over 'a'; if intended, write constrain(x, "_") on the value x of this gradient
// GRADIENT: gradient.mlir:13:8: warning: 'nn.slice' needs all of 'nn.reduce' on every rank, which gathers 96 bytes over 'a'; if intended, write constrain(x, "_") on this result x
// GRADIENT-NOT: warning:
fsdp.mesh @mesh <["a"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x32xf32>
  %s = nn.reduce sum "b i -> i" %x {fsdp.structure = #fsdp.structure<backward>} : tensor<4x32xf32> -> tensor<32xf32> loc("x.grad")
  %c = fsdp.constraint %s <@mesh, [{"a"}]> : tensor<32xf32>
  %a = nn.slice %s dim 0 start 3 : tensor<32xf32> -> tensor<5xf32>
  %t = nn.reduce sum "b i -> i" %x : tensor<4x32xf32> -> tensor<32xf32>
  %d = fsdp.constraint %t <@mesh, [{"a"}]> : tensor<32xf32>
  %b = nn.slice %t dim 0 start 3 : tensor<32xf32> -> tensor<5xf32>
  %o = nn.slice %x dim 1 start 3 : tensor<4x32xf32> -> tensor<4x1xf32>
  %e = fsdp.constraint %o <@mesh, [{}, {"a"}]> : tensor<4x1xf32>
  %f = nn.slice %o dim 1 start 0 : tensor<4x1xf32> -> tensor<4x1xf32>
}

//--- padding.mlir
// PADDING: warning: dimension 0 of 'w' has size 5 and is split in compute into 2 parts of 3, partly padding that is computed too (so are dimensions of 1 other parameters); a multiple of 2 has none
// PADDING-NOT: warning:
fsdp.mesh @mesh <["fsdp"=1, "tensor"=2]>
fsdp.param @w : tensor<5x3xf32> unit "u" init <normal, 0.5> split [["tensor"], []]
fsdp.param @v : tensor<5xf32> unit "u" init <normal, 0.5> split [["tensor"]]
fsdp.step @evaluate evaluate {
  %w = fsdp.read @w : tensor<5x3xf32>
  %v = fsdp.read @v : tensor<5xf32>
}

//--- weights.mlir
// Gathering weights that the user splits, by the model or a constraint, is not suggested; gathering others is.
// WEIGHTS-NOT: constrain(
// WEIGHTS: weights.mlir:18:11: warning: 'nn.slice' needs all of 'w' on every rank, which gathers 48 bytes over 'tensor'; parameter 'w' has this split from the model, a constraint or --shard: keep 'tensor' off the other operands and the results of 'nn.slice', or split the parameter along another dimension
// WEIGHTS-NOT: constrain(
// WEIGHTS: weights.mlir:21:12: warning: 'nn.slice' needs all of 'v' on every rank, which gathers 48 bytes over 'tensor'; parameter 'v' has this split from the model
// WEIGHTS-NOT: constrain(
// Behind casts too.
// CASTS-NOT: constrain(
// CASTS: parameter 'w' has this split from the model
// CASTS: parameter 'v' has this split from the model
// CASTS-NOT: constrain(
fsdp.mesh @mesh <["fsdp"=1, "tensor"=2]>
fsdp.param @w : tensor<3x8xf32> unit "u" init <normal, 0.5> split [[], ["tensor"]]
fsdp.param @v : tensor<3x8xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
  %w = fsdp.read @w : tensor<3x8xf32> loc("w")
  %part = nn.slice %w dim 1 start 3 : tensor<3x8xf32> -> tensor<3x5xf32>
  %v = fsdp.read @v : tensor<3x8xf32> loc("v.read")
  %held = fsdp.constraint %v <@mesh, [{}, {"tensor"}]> : tensor<3x8xf32> loc("v")
  %other = nn.slice %held dim 1 start 3 : tensor<3x8xf32> -> tensor<3x5xf32>
  %both = arith.addf %part, %other : tensor<3x5xf32>
  %y = nn.einsum "bi,io->bo" %x, %both : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<4x5xf32> -> tensor<f64>
  %count = arith.constant dense<20.0> : tensor<f64>
  fsdp.loss %sum over %count
}
