// Ranks that run different programs: the stages of a pipeline that computes y = (x * a + c) * b + c. Each role keeps its
// parameters, each sharded over `fsdp` in another way; the first and the third role keep `c`. check_roles.py trains with this module.
// DEFINE: %{lower} = fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule --fsdp-verify-phase
// RUN: %{lower} %s > %t.scheduled
// RUN: FileCheck %s --input-file=%t.scheduled --check-prefix=SCHEDULED
// RUN: fsdp-translate --fsdp-to-cpp %t.scheduled > %t.files && FileCheck %s --input-file=%t.files
// RUN: fsdp-translate --fsdp-to-record %t.scheduled | FileCheck %s --check-prefix=RECORD
// RUN: fsdp-translate --fsdp-to-cuda %t.scheduled | FileCheck %s --check-prefix=CUDA
// Each owner of a storage updates its copy, and all updates have the settings that the program has a table of.
// RUN: sed 's/ roles \[@second\]//' %s > %t.all.mlir && %{lower} %t.all.mlir > %t.all
// RUN: not fsdp-translate --fsdp-to-cpp %t.all 2>&1 | FileCheck %s --check-prefix=OWNER
// OWNER: error: 'fsdp.storage' op is owned by 'first', which does not update it, while 'second' does; name the owners in 'roles', and update the storage in each
// RUN: sed 's/clip = 5.000000e-01> @b.part/clip = 2.500000e-01> @b.part/' %t.scheduled > %t.other
// RUN: not fsdp-translate --fsdp-to-cpp %t.other 2>&1 | FileCheck %s --check-prefix=SETTINGS
// SETTINGS: error: 'fsdp.optimizer_step' op has the optimizer #fsdp.optimizer<adamw, lr = 5.000000e-02, clip = 2.500000e-01>, expected #fsdp.optimizer<adamw, lr = 5.000000e-02, clip = 5.000000e-01> as in other updates and learning rates of the module

// A program has places for the storages that its role owns, and each has its own arena.
// SCHEDULED: fsdp.program @first role {pipeline = 0 : i64} arena [[FIRST:[0-9]+]]
// SCHEDULED-NOT: "b.part
// SCHEDULED: fsdp.buffer "a.flat.exp_avg_sq" persistent
// SCHEDULED: fsdp.buffer "c.whole.exp_avg_sq" persistent
// SCHEDULED: fsdp.program @second role {pipeline = 1 : i64}
// SCHEDULED-NOT: {{"a.flat|"c.whole}}
// SCHEDULED: fsdp.buffer "b.part.exp_avg_sq" persistent
// SCHEDULED-NOT: {{"a.flat|"c.whole}}
// SCHEDULED: fsdp.program @third role {pipeline = 2 : i64}

// Started alone, the plan is the program of its first role; the driver finds the others in its table.
// CHECK: //--- train.cpp
// CHECK: // A plan with several roles is listed by its first program; each rank runs its role's.
// CHECK: static constexpr const fsdp::rt::Program *all[] = {&plans::plan_pipeline_3_fsdp_2_role_first};
// CHECK: //--- plan_pipeline_3_fsdp_2_role_first.cpp
// All roles have the same streams and communicators by number, used or not.
// CHECK: enum : int { [[STREAMS:.*]] };
// CHECK: namespace roles {
// CHECK-NEXT: constexpr int of_0[] = {0};
// CHECK-NEXT: constexpr int of_0_2[] = {0, 2};
// CHECK-NEXT: constexpr int of_1[] = {1};
// CHECK-NEXT: constexpr int of_2[] = {2};
// CHECK-NEXT: } // namespace roles
// CHECK: constexpr Storage storages[] = {
// CHECK: .name = "a.flat"
// CHECK: .shard = persistent::a_flat_parameter
// CHECK: .roles = roles::of_0}
// CHECK: .name = "b.part"
// CHECK: .shard = ArenaSpan<float>{Buffer::kElsewhere, 2}
// CHECK: .roles = roles::of_1}
// CHECK: .name = "c.whole"
// CHECK: .roles = roles::of_0_2}
// CHECK: constexpr Input inputs[] = {
// CHECK: .name = "x"
// CHECK: .slice = train::arena::
// CHECK: .roles = roles::of_0}
// CHECK: .name = "t"
// CHECK: .slice = ArenaSpan<float>{Buffer::kElsewhere, 8}
// CHECK: .roles = roles::of_2}
// The last role alone counts samples, and all know.
// CHECK: .countsSamples = true
// CHECK: .roleAxes = {kAxisPipeline},
// CHECK-NEXT: .role = "first",
// CHECK-NEXT: .roles = roles::of_0,
// CHECK-NEXT: .programs = plans::plan_pipeline_3_fsdp_2_programs,
// CHECK: const fsdp::rt::Program plans::plan_pipeline_3_fsdp_2_role_first = program;
// CHECK: //--- plan_pipeline_3_fsdp_2_role_second.cpp
// CHECK: enum : int { [[STREAMS]] };
// The rate is that of the module, and this program, too, has it.
// CHECK: .defaultLearningRate = 0.05
// CHECK: .role = "second",
// CHECK: //--- plan_pipeline_3_fsdp_2_role_third.cpp
// CHECK: .role = "third",
// CHECK-NEXT: .roles = roles::of_2,
// The tables of the model are written once.
// CHECK: //--- plans.h
// CHECK: extern const Program plan_pipeline_3_fsdp_2_role_first; // pipeline=3,fsdp=2, role first
// CHECK: inline constexpr const Program *plan_pipeline_3_fsdp_2_programs[] = {
// CHECK: inline constexpr Parameter a_flat_members[] = {

// With CUDA all ranks set up all communicators at the start, in the order of the table. Each program has what it issues first on
// those of collectives: the first two roles gather on the first one, where the third adds up. Transfers are set up by all.
// CUDA: //--- plan_pipeline_3_fsdp_2_role_first.cpp
// CUDA: #include "runtime/CudaRuntime.h"
// CUDA: constexpr CommunicatorSpec communicators[] = {
// CUDA-NEXT: {.name = "fsdp_activation", .axes = {kAxisFsdp}, .firstUse = FirstUse::Gather},
// CUDA-NEXT: {.name = "pipeline_send_up", .axes = {kAxisPipeline}, .offset = 1, .sends = true},
// CUDA-NEXT: {.name = "pipeline_receive_down", .axes = {kAxisPipeline}, .offset = 1},
// CUDA: {.name = "pipeline_reduce", .axes = {kAxisPipeline}, .firstUse = FirstUse::Other},
// CUDA: .role = "first",
// CUDA: //--- plan_pipeline_3_fsdp_2_role_third.cpp
// CUDA: constexpr CommunicatorSpec communicators[] = {
// CUDA-NEXT: {.name = "fsdp_activation", .axes = {kAxisFsdp}, .firstUse = FirstUse::Other},
// CUDA: .role = "third",
// CUDA: //--- kernels.cu
// CUDA: //--- plans.h
// RUN: not grep firstUse %t.files

// RECORD: role first
// RECORD-NEXT: segment train
// RECORD: kind=send
// RECORD: role second
// RECORD-NEXT: segment train
// RECORD: role third

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=3, "fsdp"=2]>
  fsdp.param @a : tensor<4xf32> unit "a" init <normal, 0.5>
  fsdp.param @b : tensor<4xf32> unit "b" init <constant, 0.75>
  fsdp.param @c : tensor<4xf32> unit "c" init <constant, 0.25>
  fsdp.storage @a.flat : tensor<16xf32> flat over ["fsdp"] roles [@first] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@a at 0>]
  fsdp.storage @b.part : tensor<2xf32> dimension dim 0 over ["fsdp"] roles [@second] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@b at 0>]
  fsdp.storage @c.whole : tensor<4xf32> replicated over [] roles [@first, @third] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@c at 0>]

  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train, @evaluate] {
      %x = fsdp.input "x" sample_dim 0 shard_of 4 over ["fsdp"] : tensor<2x4xf32>
      %a0 = fsdp.load @a.flat "parameter" : tensor<16xf32>
      %a1 = fsdp.all_gather %a0 dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<4xf32> loc("a gather")
      %a = nn.repeat "i -> b i" %a1 : tensor<4xf32> -> tensor<2x4xf32>
      %c0 = fsdp.load @c.whole "parameter" : tensor<4xf32>
      %c = nn.repeat "i -> b i" %c0 : tensor<4xf32> -> tensor<2x4xf32>
      %xa = arith.mulf %x, %a : tensor<2x4xf32>
      %y = arith.addf %xa, %c : tensor<2x4xf32> loc("y")
      fsdp.send %y offset 1 over ["pipeline"] : tensor<2x4xf32> loc("y")
      %dy = fsdp.receive offset 1 over ["pipeline"] : tensor<2x4xf32> loc("dy")
      %dxa = arith.mulf %dy, %x : tensor<2x4xf32>
      %da = nn.reduce sum "b i -> i" %dxa : tensor<2x4xf32> -> tensor<4xf32>
      %ga = fsdp.reduce_scatter %da dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<16xf32> loc("a reduce")
      %dc0 = nn.reduce sum "b i -> i" %dy : tensor<2x4xf32> -> tensor<4xf32>
      %dc = fsdp.all_reduce sum %dc0 over ["fsdp"] : tensor<4xf32> loc("dc")
      // The two copies of c add the gradients of both uses in one order.
      fsdp.send %dc offset 2 over ["pipeline"] : tensor<4xf32> loc("dc")
      %theirs = fsdp.receive offset 2 over ["pipeline"] : tensor<4xf32> loc("dc of third")
      %gc = arith.addf %dc, %theirs : tensor<4xf32>
      %zero = arith.constant dense<0.0> : tensor<f64>
      %sum = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64> loc("sum")
      %n = arith.constant dense<16.0> : tensor<f64>
      %mean = arith.divf %sum, %n : tensor<f64>
      %loss = arith.truncf %mean : tensor<f64> to tensor<f32>
      fsdp.output "loss" %loss
      // c counts once, here.
      %sa0 = fsdp.square_sum %ga : tensor<16xf32>
      %sa = fsdp.all_reduce sum %sa0 over ["fsdp"] : tensor<f64> loc("square")
      %sc = fsdp.square_sum %gc : tensor<4xf32>
      %s = arith.addf %sa, %sc : tensor<f64>
      %squares = fsdp.all_reduce sum %s over ["pipeline"] : tensor<f64> loc("squares")
      %root = math.sqrt %squares : tensor<f64>
      %norm = arith.truncf %root : tensor<f64> to tensor<f32>
      fsdp.output "grad_norm" %norm
      %ok = fsdp.acceptable %loss norm %norm
      %lr = fsdp.learning_rate <adamw, lr = 0.05, clip = 0.5>
      fsdp.output "lr" %lr
      %scale = fsdp.clip_scale <adamw, lr = 0.05, clip = 0.5> %norm
      %m = fsdp.load @a.flat "exp_avg" : tensor<16xf32>
      %v = fsdp.load @a.flat "exp_avg_sq" : tensor<16xf32>
      %a2, %am:2 = fsdp.optimizer_step <adamw, lr = 0.05, clip = 0.5> @a.flat %a0, %ga states(%m, %v) lr %lr scale %scale if %ok : tensor<16xf32> states 2
      fsdp.store %a2, @a.flat "parameter" : tensor<16xf32>
      fsdp.store %am#0, @a.flat "exp_avg" : tensor<16xf32>
      fsdp.store %am#1, @a.flat "exp_avg_sq" : tensor<16xf32>
      %mc = fsdp.load @c.whole "exp_avg" : tensor<4xf32>
      %vc = fsdp.load @c.whole "exp_avg_sq" : tensor<4xf32>
      %c2, %cm:2 = fsdp.optimizer_step <adamw, lr = 0.05, clip = 0.5> @c.whole %c0, %gc states(%mc, %vc) lr %lr scale %scale if %ok : tensor<4xf32> states 2
      fsdp.store %c2, @c.whole "parameter" : tensor<4xf32>
      fsdp.store %cm#0, @c.whole "exp_avg" : tensor<4xf32>
      fsdp.store %cm#1, @c.whole "exp_avg_sq" : tensor<4xf32>
      fsdp.advance if %ok
    }
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      %x = fsdp.input "x" sample_dim 0 shard_of 4 over ["fsdp"] : tensor<2x4xf32>
      %a0 = fsdp.load @a.flat "parameter" : tensor<16xf32>
      %a1 = fsdp.all_gather %a0 dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<4xf32>
      %a = nn.repeat "i -> b i" %a1 : tensor<4xf32> -> tensor<2x4xf32>
      %c0 = fsdp.load @c.whole "parameter" : tensor<4xf32>
      %c = nn.repeat "i -> b i" %c0 : tensor<4xf32> -> tensor<2x4xf32>
      %xa = arith.mulf %x, %a : tensor<2x4xf32>
      %y = arith.addf %xa, %c : tensor<2x4xf32>
      fsdp.send %y offset 1 over ["pipeline"] : tensor<2x4xf32> loc("y")
      %zero = arith.constant dense<0.0> : tensor<f64>
      %sum = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64>
      %weight = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64>
      fsdp.output_sum "loss" %sum over %weight
    }
  }

  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train, @evaluate] {
      %y = fsdp.receive offset -1 over ["pipeline"] : tensor<2x4xf32> loc("y")
      %b0 = fsdp.load @b.part "parameter" : tensor<2xf32>
      %b1 = fsdp.all_gather %b0 dim 0 over ["fsdp"] : tensor<2xf32> -> tensor<4xf32> loc("b gather")
      %b = nn.repeat "i -> b i" %b1 : tensor<4xf32> -> tensor<2x4xf32>
      %z = arith.mulf %y, %b : tensor<2x4xf32> loc("z")
      fsdp.send %z offset 1 over ["pipeline"] : tensor<2x4xf32> loc("z")
      %dz = fsdp.receive offset 1 over ["pipeline"] : tensor<2x4xf32> loc("dz")
      %dy = arith.mulf %dz, %b : tensor<2x4xf32> loc("dy")
      fsdp.send %dy offset -1 over ["pipeline"] : tensor<2x4xf32> loc("dy")
      %dyb = arith.mulf %dz, %y : tensor<2x4xf32>
      %db = nn.reduce sum "b i -> i" %dyb : tensor<2x4xf32> -> tensor<4xf32>
      %gb = fsdp.reduce_scatter %db dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<2xf32> loc("b reduce")
      %zero = arith.constant dense<0.0> : tensor<f64>
      %sum = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64> loc("sum")
      %n = arith.constant dense<16.0> : tensor<f64>
      %mean = arith.divf %sum, %n : tensor<f64>
      %loss = arith.truncf %mean : tensor<f64> to tensor<f32>
      fsdp.output "loss" %loss
      %sb0 = fsdp.square_sum %gb : tensor<2xf32>
      %sb = fsdp.all_reduce sum %sb0 over ["fsdp"] : tensor<f64> loc("square")
      %squares = fsdp.all_reduce sum %sb over ["pipeline"] : tensor<f64> loc("squares")
      %root = math.sqrt %squares : tensor<f64>
      %norm = arith.truncf %root : tensor<f64> to tensor<f32>
      fsdp.output "grad_norm" %norm
      %ok = fsdp.acceptable %loss norm %norm
      %lr = fsdp.learning_rate <adamw, lr = 0.05, clip = 0.5>
      fsdp.output "lr" %lr
      %scale = fsdp.clip_scale <adamw, lr = 0.05, clip = 0.5> %norm
      %m = fsdp.load @b.part "exp_avg" : tensor<2xf32>
      %v = fsdp.load @b.part "exp_avg_sq" : tensor<2xf32>
      %b2, %bm:2 = fsdp.optimizer_step <adamw, lr = 0.05, clip = 0.5> @b.part %b0, %gb states(%m, %v) lr %lr scale %scale if %ok : tensor<2xf32> states 2
      fsdp.store %b2, @b.part "parameter" : tensor<2xf32>
      fsdp.store %bm#0, @b.part "exp_avg" : tensor<2xf32>
      fsdp.store %bm#1, @b.part "exp_avg_sq" : tensor<2xf32>
      fsdp.advance if %ok
    }
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      %y = fsdp.receive offset -1 over ["pipeline"] : tensor<2x4xf32> loc("y")
      %b0 = fsdp.load @b.part "parameter" : tensor<2xf32>
      %b1 = fsdp.all_gather %b0 dim 0 over ["fsdp"] : tensor<2xf32> -> tensor<4xf32>
      %b = nn.repeat "i -> b i" %b1 : tensor<4xf32> -> tensor<2x4xf32>
      %z = arith.mulf %y, %b : tensor<2x4xf32>
      fsdp.send %z offset 1 over ["pipeline"] : tensor<2x4xf32> loc("z")
      %zero = arith.constant dense<0.0> : tensor<f64>
      %sum = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64>
      %weight = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64>
      fsdp.output_sum "loss" %sum over %weight
    }
  }

  fsdp.program @third role {pipeline = 2 : i64} {
    fsdp.segment @train train next [@train, @evaluate] {
      %t = fsdp.input "t" sample_dim 0 shard_of 4 over ["fsdp"] : tensor<2x4xf32>
      %z = fsdp.receive offset -1 over ["pipeline"] : tensor<2x4xf32> loc("z")
      %c0 = fsdp.load @c.whole "parameter" : tensor<4xf32>
      %c = nn.repeat "i -> b i" %c0 : tensor<4xf32> -> tensor<2x4xf32>
      %y = arith.addf %z, %c : tensor<2x4xf32>
      %d = arith.subf %y, %t : tensor<2x4xf32>
      %sq = arith.mulf %d, %d : tensor<2x4xf32>
      %part = nn.reduce sum "b i ->" %sq : tensor<2x4xf32> -> tensor<f64>
      %eighth = arith.constant dense<0.125> : tensor<2x4xf32>
      %dz = arith.mulf %d, %eighth : tensor<2x4xf32> loc("dz")
      fsdp.send %dz offset -1 over ["pipeline"] : tensor<2x4xf32> loc("dz")
      %dc0 = nn.reduce sum "b i -> i" %dz : tensor<2x4xf32> -> tensor<4xf32>
      %dc = fsdp.all_reduce sum %dc0 over ["fsdp"] : tensor<4xf32> loc("dc")
      %theirs = fsdp.receive offset -2 over ["pipeline"] : tensor<4xf32> loc("dc of first")
      fsdp.send %dc offset -2 over ["pipeline"] : tensor<4xf32> loc("dc")
      %gc = arith.addf %theirs, %dc : tensor<4xf32>
      %own = fsdp.all_reduce sum %part over ["fsdp"] : tensor<f64> loc("loss")
      %sum = fsdp.all_reduce sum %own over ["pipeline"] : tensor<f64> loc("sum")
      %n = arith.constant dense<16.0> : tensor<f64>
      %mean = arith.divf %sum, %n : tensor<f64>
      %loss = arith.truncf %mean : tensor<f64> to tensor<f32>
      fsdp.output "loss" %loss
      %zero = arith.constant dense<0.0> : tensor<f64>
      %squares = fsdp.all_reduce sum %zero over ["pipeline"] : tensor<f64> loc("squares")
      %root = math.sqrt %squares : tensor<f64>
      %norm = arith.truncf %root : tensor<f64> to tensor<f32>
      fsdp.output "grad_norm" %norm
      %ok = fsdp.acceptable %loss norm %norm
      %lr = fsdp.learning_rate <adamw, lr = 0.05, clip = 0.5>
      fsdp.output "lr" %lr
      %scale = fsdp.clip_scale <adamw, lr = 0.05, clip = 0.5> %norm
      %mc = fsdp.load @c.whole "exp_avg" : tensor<4xf32>
      %vc = fsdp.load @c.whole "exp_avg_sq" : tensor<4xf32>
      %c2, %cm:2 = fsdp.optimizer_step <adamw, lr = 0.05, clip = 0.5> @c.whole %c0, %gc states(%mc, %vc) lr %lr scale %scale if %ok : tensor<4xf32> states 2
      fsdp.store %c2, @c.whole "parameter" : tensor<4xf32>
      fsdp.store %cm#0, @c.whole "exp_avg" : tensor<4xf32>
      fsdp.store %cm#1, @c.whole "exp_avg_sq" : tensor<4xf32>
      fsdp.advance if %ok
    }
    fsdp.segment @evaluate evaluate next [@train, @evaluate] {
      %count = fsdp.sample_count of 4
      %t = fsdp.input "t" sample_dim 0 shard_of 4 over ["fsdp"] : tensor<2x4xf32>
      %z = fsdp.receive offset -1 over ["pipeline"] : tensor<2x4xf32> loc("z")
      %c0 = fsdp.load @c.whole "parameter" : tensor<4xf32>
      %c = nn.repeat "i -> b i" %c0 : tensor<4xf32> -> tensor<2x4xf32>
      %y = arith.addf %z, %c : tensor<2x4xf32>
      %d = arith.subf %y, %t : tensor<2x4xf32>
      %sq = arith.mulf %d, %d : tensor<2x4xf32>
      %valid = fsdp.mask_samples %sq, %count dim 0 shard_of 4 over ["fsdp"] fill 0.0 : tensor<2x4xf32>
      %part = nn.reduce sum "b i ->" %valid : tensor<2x4xf32> -> tensor<f64>
      %own = fsdp.all_reduce sum %part over ["fsdp"] : tensor<f64>
      %sum = fsdp.all_reduce sum %own over ["pipeline"] : tensor<f64>
      %samples = arith.sitofp %count : tensor<i64> to tensor<f64>
      %four = arith.constant dense<4.0> : tensor<f64>
      %elements = arith.mulf %samples, %four : tensor<f64>
      %weight = fsdp.all_reduce sum %elements over ["pipeline"] : tensor<f64>
      fsdp.output_sum "loss" %sum over %weight
    }
  }
}
