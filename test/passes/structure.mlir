// Every pass keeps the structure of ops, and gives what it makes that of the op it is made for.
// RUN: fsdp-opt %s --fsdp-derive-evaluation --fsdp-shard-parameters --fsdp-mixed-precision=compute=bf16 > %t.cast.mlir
// RUN: FileCheck %s --check-prefix=CAST < %t.cast.mlir
// RUN: fsdp-opt %t.cast.mlir --fsdp-count-samples > %t.count.mlir
// RUN: FileCheck %s --check-prefix=COUNT < %t.count.mlir
// RUN: fsdp-opt %t.count.mlir --fsdp-differentiate > %t.gradient.mlir
// RUN: FileCheck %s --check-prefix=GRADIENT < %t.gradient.mlir
// RUN: fsdp-opt %t.gradient.mlir --fsdp-apply-optimizer > %t.update.mlir
// RUN: FileCheck %s --check-prefix=UPDATE < %t.update.mlir
// RUN: fsdp-opt %t.update.mlir --fsdp-propagate --fsdp-partition > %t.local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL < %t.local.mlir
// RUN: fsdp-opt %t.local.mlir --fsdp-fuse > %t.fused.mlir
// RUN: FileCheck %s --check-prefix=FUSED < %t.fused.mlir
// RUN: fsdp-opt %t.fused.mlir --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase | FileCheck %s --check-prefix=SCHEDULED

// A cast belongs where its value is used; inputs and the loss are of the module itself.
// CAST-LABEL: fsdp.step @train
// CAST: %[[X:.*]] = fsdp.input "x" sample_dim 0 : tensor<10x12xf32>
// CAST: arith.truncf %[[X]] {fsdp.structure = #fsdp.structure<"fc1">}
// CAST: arith.mulf {{.*}} {fsdp.structure = #fsdp.structure<"fc1" stage 1>}
// CAST: arith.extf {{.*}} {fsdp.structure = #fsdp.structure<"fc2">}
// CAST: fsdp.loss %{{.*}} over %{{[a-z_0-9]*$}}
// CAST-LABEL: fsdp.step @evaluate
// CAST: nn.einsum {{.*}} {fsdp.structure = #fsdp.structure<"fc1">}

// So does a mask. What computes a weight is for the loss.
// COUNT-LABEL: fsdp.step @evaluate
// COUNT: fsdp.sample_count of 10{{$}}
// COUNT: fsdp.mask_samples {{.*}} {fsdp.structure = #fsdp.structure<"fc2">}
// COUNT: arith.sitofp %{{.*}} : tensor<i64> to tensor<f64>

// Backward in the unit and stage of what is differentiated, parameters that are read again and pieces of a gradient that are
// joined among it; the loss is divided forward.
// GRADIENT-LABEL: fsdp.step @train
// GRADIENT: arith.constant dense<1.000000e+00> : tensor<f64>
// GRADIENT-NEXT: arith.divf {{.*}} {fsdp.structure = #fsdp.structure<backward>}
// GRADIENT-NOT: #fsdp.structure<"fc{{[12]}}">
// GRADIENT: nn.concat {{.*}} {fsdp.structure = #fsdp.structure<"fc2" backward>}
// GRADIENT: fsdp.read @v {fsdp.structure = #fsdp.structure<"fc2" backward>}
// GRADIENT: fsdp.gradient @v, {{.*}} {fsdp.structure = #fsdp.structure<"fc2" backward>}
// GRADIENT: arith.mulf {{.*}} {fsdp.structure = #fsdp.structure<"fc1" backward stage 1>}
// GRADIENT: arith.mulf {{.*}} {fsdp.structure = #fsdp.structure<"fc1" backward>}
// GRADIENT: fsdp.gradient @w, {{.*}} {fsdp.structure = #fsdp.structure<"fc1" backward>}
// GRADIENT: arith.divf %{{.*}}, %{{.*}} : tensor<f64>
// GRADIENT-NEXT: arith.truncf %{{.*}} : tensor<f64> to tensor<f32>
// GRADIENT-NEXT: fsdp.output "loss"
// GRADIENT-LABEL: fsdp.step @evaluate
// GRADIENT-NOT: backward

// The update is of the module; that of a parameter is of its unit.
// UPDATE-LABEL: fsdp.step @train
// UPDATE: fsdp.output "loss" %{{[0-9]+$}}
// UPDATE: fsdp.global_norm {{.*}} {fsdp.structure = #fsdp.structure<update>}
// UPDATE: fsdp.output "grad_norm" {{.*}} {fsdp.structure = #fsdp.structure<update>}
// UPDATE: fsdp.update @v, {{.*}} {fsdp.structure = #fsdp.structure<"fc2" update>}
// UPDATE: fsdp.update @b, {{.*}} {fsdp.structure = #fsdp.structure<"fc1" update>}
// UPDATE: fsdp.advance {{.*}} {fsdp.structure = #fsdp.structure<update>}

// Gathers say what they gather and reductions what they reduce, in the unit of the parameters, the casts beside them too. Masks belong to
// what they are for.
// LOCAL-LABEL: fsdp.segment @train
// LOCAL: fsdp.load @fc1.flat "parameter" {fsdp.structure = #fsdp.structure<"fc1">}
// LOCAL-NEXT: arith.truncf {{.*}} {fsdp.gathers = @fc1.flat, fsdp.structure = #fsdp.structure<"fc1">}
// LOCAL-NEXT: fsdp.all_gather {{.*}} {fsdp.gathers = @fc1.flat, fsdp.structure = #fsdp.structure<"fc1">}
// LOCAL-NEXT: fsdp.view {{.*}} {fsdp.structure = #fsdp.structure<"fc1">}
// LOCAL: arith.mulf {{.*}} {fsdp.structure = #fsdp.structure<"fc1" stage 1>}
// LOCAL: fsdp.all_gather {{.*}} {fsdp.gathers = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2">}
// LOCAL: fsdp.view {{.*}} {fsdp.structure = #fsdp.structure<"fc2" backward>}
// LOCAL: fsdp.mask_padding {{.*}} {fsdp.structure = #fsdp.structure<"fc2" backward>}
// LOCAL-NEXT: nn.einsum {{.*}} {fsdp.structure = #fsdp.structure<"fc2" backward>}
// LOCAL-NEXT: fsdp.flatten {{.*}} {fsdp.reduces = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2" backward>}
// LOCAL-NEXT: fsdp.reduce_scatter {{.*}} {fsdp.reduces = @fc2.flat, fsdp.structure = #fsdp.structure<"fc2" backward>}
// LOCAL: fsdp.all_reduce sum %{{.*}} over ["fsdp"] : tensor<f64>
// LOCAL: fsdp.output "loss" %{{[0-9]+$}}
// LOCAL: fsdp.all_reduce {{.*}} {fsdp.structure = #fsdp.structure<update>}
// LOCAL: fsdp.load @fc2.flat "momentum" {fsdp.structure = #fsdp.structure<"fc2" update>}
// LOCAL-NEXT: fsdp.optimizer_step {{.*}} {fsdp.structure = #fsdp.structure<"fc2" update>}
// LOCAL-NEXT: fsdp.store {{.*}} {fsdp.structure = #fsdp.structure<"fc2" update>}

// A kernel has the structure of the op that it ends with; what stands in it has none.
// FUSED-LABEL: fsdp.segment @train
// FUSED: nn.fused {{.*}} {fsdp.structure = #fsdp.structure<"fc1" stage 1>}
// FUSED-NOT: fsdp.structure
// FUSED: nn.yield
// FUSED: nn.fused {{.*}} {fsdp.structure = #fsdp.structure<"fc2" backward>}
// FUSED-NOT: fsdp.structure
// FUSED: nn.yield

// Launches carry it, buffers say what they hold.
// SCHEDULED-LABEL: fsdp.segment @train
// SCHEDULED: fsdp.buffer "fc1.flat.all_gather" holds @fc1.flat "gathered" offset
// SCHEDULED: fsdp.buffer "flatten" holds @fc2.flat "gradient" offset
// SCHEDULED-NOT: #fsdp.structure
// SCHEDULED: fsdp.launch "truncf 2" on "gather" of "fc1" ins
// SCHEDULED: fsdp.launch "fc1.flat all_gather" on "gather" of "fc1" ins
// SCHEDULED: fsdp.launch "truncf 3" on "gather" of "fc2" ins
// SCHEDULED: fsdp.launch "fused" on "compute" of "fc1" stage 1 wait
// SCHEDULED: fsdp.launch "fused 2" on "compute" of "fc2" backward wait
// SCHEDULED: fsdp.launch "reduce_scatter" on "reduce" of "fc2" backward wait
// SCHEDULED: fsdp.launch "all_reduce" on "reduce" ins
// SCHEDULED: fsdp.launch "square_sum" on "compute" of update ins
// SCHEDULED: fsdp.launch "optimizer_step" on "compute" of update {{.*}}ins
// SCHEDULED-NOT: #fsdp.structure

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<12x6xf32> unit "fc1" init <normal, 0.5>
fsdp.param @b : tensor<6xf32> unit "fc1" init <constant, 0.0>
fsdp.param @v : tensor<6x3xf32> unit "fc2" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1, momentum = 0.9> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x12xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %w = fsdp.read @w {fsdp.structure = #fsdp.structure<"fc1">} : tensor<12x6xf32>
  %z = nn.einsum "bi,io->bo" %x, %w {fsdp.structure = #fsdp.structure<"fc1">} : (tensor<10x12xf32>, tensor<12x6xf32>) -> tensor<10x6xf32>
  %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"fc1">} : tensor<6xf32>
  %bb = nn.repeat "o -> b o" %b {fsdp.structure = #fsdp.structure<"fc1">} : tensor<6xf32> -> tensor<10x6xf32>
  %s = arith.addf %z, %bb {fsdp.structure = #fsdp.structure<"fc1">} : tensor<10x6xf32>
  %h = math.tanh %s {fsdp.structure = #fsdp.structure<"fc1">} : tensor<10x6xf32>
  %h2 = arith.mulf %h, %h {fsdp.structure = #fsdp.structure<"fc1" stage 1>} : tensor<10x6xf32>
  %v = fsdp.read @v {fsdp.structure = #fsdp.structure<"fc2">} : tensor<6x3xf32>
  %p = nn.einsum "bi,io->bo" %h2, %v {fsdp.structure = #fsdp.structure<"fc2">} : (tensor<10x6xf32>, tensor<6x3xf32>) -> tensor<10x3xf32>
  %first = nn.slice %p dim 1 start 0 {fsdp.structure = #fsdp.structure<"fc2">} : tensor<10x3xf32> -> tensor<10x1xf32>
  %rest = nn.slice %p dim 1 start 1 {fsdp.structure = #fsdp.structure<"fc2">} : tensor<10x3xf32> -> tensor<10x2xf32>
  %t = math.tanh %first {fsdp.structure = #fsdp.structure<"fc2">} : tensor<10x1xf32>
  %q = nn.concat %t, %rest dim 1 {fsdp.structure = #fsdp.structure<"fc2">} : (tensor<10x1xf32>, tensor<10x2xf32>) -> tensor<10x3xf32>
  %d = arith.subf %q, %y {fsdp.structure = #fsdp.structure<"fc2">} : tensor<10x3xf32>
  %e = arith.mulf %d, %d {fsdp.structure = #fsdp.structure<"fc2">} : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %e {fsdp.structure = #fsdp.structure<"fc2">} : tensor<10x3xf32> -> tensor<f64>
  %weight = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
