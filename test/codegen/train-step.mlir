// One whole step on two ranks: what the program looks like, and that its record is what the IR says.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s
// RUN: fsdp-translate --fsdp-to-record %s | FileCheck %s --check-prefix=RECORD
//
// The text does not depend on the run.
// RUN: fsdp-translate --fsdp-to-cpp %s > %t.1
// RUN: fsdp-translate --fsdp-to-cpp %s > %t.2
// RUN: cmp %t.1 %t.2
//
// Programs that differ in a constant only have different digests, so that their ranks refuse one another.
// RUN: sed 's/momentum = 0.9/momentum = 0.8/' %s | fsdp-translate --fsdp-to-cpp > %t.3
// RUN: grep -h digest %t.1 %t.2 | sort -u | count 1
// RUN: grep -h digest %t.1 %t.3 | sort -u | count 2

//
// Patterns of rates and decay are defaults of the program, and no code depends on them.
// RUN: sed 's/momentum = 0.9>/momentum = 0.9, lr_scale = ["fc.kernel=0.5", "*=2"], no_decay = ["fc.k*"]>/' %s | fsdp-translate --fsdp-to-cpp > %t.4
// RUN: FileCheck %s --check-prefix=GROUPS < %t.4
// RUN: grep -v -e rate_scales -e no_decay -e digest %t.4 > %t.5
// RUN: grep -v -e digest %t.1 | cmp - %t.5
// GROUPS: constexpr const char *rate_scales[] = {"fc.kernel=0.5", "*=2"};
// GROUPS-NEXT: constexpr const char *no_decay[] = {"fc.k*"};
// GROUPS: .updateConstants = update_constants,
// GROUPS-NEXT: .rateScales = rate_scales,
// GROUPS-NEXT: .noDecay = no_decay,

// The broadcast bias, the padding and the sum are one pair of loops; the sum runs in order.
// CHECK-LABEL: void fc_error(std::int64_t held, const float *z, const float *bias, const float *target,
// CHECK:   double total = 0.0;
// CHECK:   for (std::int64_t b = 0; b < 5; ++b) {
// CHECK:     for (std::int64_t o = 0; o < 3; ++o) {
// CHECK:       const float addf = z[b * 3 + o] + bias[o];
// CHECK:       const float mask_padding = b < held ? subf : 0.0f;
// CHECK:       error[b * 3 + o] = mask_padding;
// CHECK:       total = total + reduce;
// CHECK:   sum[0] = total;

// Neighbouring dimensions are one loop where nothing tells them apart.
// CHECK-LABEL: void fc_error_grad(
// CHECK:       #pragma omp simd
// CHECK-NEXT:  for (std::int64_t i = 0; i < 15; ++i) {
// CHECK-NEXT:    error_grad[i] = error[i] * 0.074074075f;

// A sum over leading dimensions is vectorized over the inner one.
// CHECK-LABEL: void fc_bias_grad(
// CHECK:       std::fill_n(bias_grad, 3, 0.0f);
// CHECK-NEXT:  for (std::int64_t b = 0; b < 5; ++b) {
// CHECK-NEXT:    #pragma omp simd
// CHECK-NEXT:    for (std::int64_t o = 0; o < 3; ++o) {
// CHECK-NEXT:      bias_grad[o] = bias_grad[o] + error_grad[b * 3 + o];

// The update rule, over some of a shard's elements.
// CHECK-LABEL: void sgd(std::int64_t begin, std::int64_t end, fsdp::rt::UpdateStep step, const float *parameter,
// CHECK-NEXT:      const float *gradient, const float *momentum, float *new_parameter, float *new_momentum) {
// CHECK-NEXT:    const float momentum_2 = step.constants[0];
// CHECK-NEXT:    const float weight_decay = step.constants[1];
// CHECK-NEXT:    const float decay = step.decays ? weight_decay : 0.0f;
// CHECK-NEXT:    #pragma omp simd
// CHECK-NEXT:    for (std::int64_t i = begin; i < end; ++i) {
// CHECK:           const float mulf = momentum_2 * momentum[i];
// CHECK:           new_momentum[i] = addf_2;

// CHECK: enum : int { kInput, kGather, kCompute, kReduce };
// CHECK: enum : int { kOverFsdpGather, kOverFsdpReduce };
// CHECK: constexpr ArenaSpan<StepState> step_state{0, 1};
// CHECK: constexpr ArenaSpan<float> fc_flat_parameter{128, 16};
// CHECK: {.name = "fc.kernel", .shape = {4, 3}, .fileShape = {4, 3}, .offset = 0,
// CHECK: {.name = "fc.flat", .layout = Layout::Flat, .axes = {kAxisFsdp}, .communicator = kOverFsdpGather,
// CHECK-NEXT: .size = 15, .firstParameter = 0, .shard = persistent::fc_flat_parameter,

// CHECK: namespace train {
// CHECK: constexpr ArenaSpan<float> fc_bias{496, 3}; // of fc.gathered

// CHECK-LABEL: void fc_forward(Context &c) {
// CHECK-NEXT:  load_input(c, kInput, "x", kInputX, arena::x);
// CHECK-NEXT:  record(c, kInput, kDoneX);
// CHECK:       all_gather(c, kGather, "fc.gather", kOverFsdpGather,
// CHECK-NEXT:      ShardLayout{/*outer=*/1, /*local=*/16, /*inner=*/1, /*total=*/15},
// CHECK-NEXT:      persistent::fc_flat_parameter, arena::fc_gathered);
// CHECK:       wait(c, kCompute, kDoneX);
// CHECK-NEXT:  wait(c, kCompute, kDoneFcGather);
// CHECK-NEXT:  gemm(c, kCompute, "fc.product",
// CHECK-NEXT:      Gemm{/*m=*/5, /*n=*/3, /*k=*/4, /*batch=*/{1, 1, 1}, /*a=*/{4, 1, {{{}}}}, /*b=*/{3, 1, {{{}}}},
// CHECK:       launch(c, kCompute, "fc.error", reads(arena::fc_z, arena::fc_bias, arena::target),
// CHECK-NEXT:      writes(arena::fc_error, arena::loss_sum),
// CHECK-NEXT:      [held = ShardLayout{1, 5, 1,
// CHECK-NEXT:      9}.held(c.coordinate(kAxisFsdp))](auto... p) { return fused::fc_error(held, p...); });

// CHECK-LABEL: void fc_backward(Context &c) {
// CHECK: constexpr ArenaSpan<bool> ok{1152, 1};
// CHECK-LABEL: void update(Context &c) {
// CHECK:       optimizer_steps(c, kCompute, "fc.update", /*deferred=*/false, fused::sgd, arena::lr,
// CHECK-NEXT:      /*scale=*/ArenaSpan<float>{}, arena::ok, persistent::step_state,
// CHECK-NEXT:      badGradient(persistent::step_state),
// CHECK-NEXT:      shard_update(storages[kStorageFcFlat], persistent::fc_flat_parameter, arena::fc_grad_shard,
// CHECK-NEXT:      persistent::fc_flat_momentum));
// CHECK-NEXT:  advance(c, kCompute, "advance", persistent::step_state, arena::ok,
// CHECK-NEXT:      badGradients(persistent::step_state), persistent::step_state,
// CHECK-NEXT:      badGradients(persistent::step_state));

// CHECK:      constexpr UpdateConstant update_constants[] = {
// CHECK-NEXT:   {.name = "momentum", .value = 0.9f, .isFraction = true},
// CHECK-NEXT:   {.name = "weight_decay", .value = 0.0f},
// CHECK-NEXT: };
// CHECK: constexpr Program program = {
// CHECK:   .arenaBytes = 1280,
// CHECK:   .updateRule = "sgd",
// CHECK-NEXT: .updateConstants = update_constants,
// CHECK:   .digest = 0x{{[0-9a-f]+}},
// CHECK: int main(int argc, char **argv) { return runTraining(program, argc, argv); }

// RECORD:      segment train
// RECORD-NEXT: launch input "x" reads=[] writes=[256:80]
// RECORD-NEXT: record input 0
// RECORD:      launch gather "fc.gather" reads=[128:64] writes=[448:60] over=fsdp_gather kind=all_gather
// RECORD:      wait compute 0
// RECORD-NEXT: wait compute 2
// RECORD-NEXT: launch compute "fc.product" reads=[256:80,448:48] writes=[512:60]
// RECORD:      launch compute "fc.update" reads=[128:64,896:64,192:64,1088:4,1152:1,0:104,104:4] writes=[128:64,192:64,104:4]
// RECORD-NEXT: launch compute "advance" reads=[0:104,1152:1,104:8] writes=[0:104,104:8]

module @regression attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @fc.kernel : tensor<4x3xf32> unit "fc" init <normal, 0.02>
  fsdp.param @fc.bias : tensor<3xf32> unit "fc" init <constant, 0.0>
  fsdp.storage @fc.flat : tensor<16xf32> flat over ["fsdp"] states ["momentum"]
      members [#fsdp.member<@fc.kernel at 0>, #fsdp.member<@fc.bias at 12>]
  fsdp.program @all role {} arena 1280 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "fc.flat.parameter" persistent holds @fc.flat "parameter" offset 128 : !fsdp.buffer<tensor<16xf32>>
    %m = fsdp.buffer "fc.flat.momentum" persistent holds @fc.flat "momentum" offset 192 : !fsdp.buffer<tensor<16xf32>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" offset 256 : !fsdp.buffer<tensor<5x4xf32>>
      %t = fsdp.buffer "target" offset 384 : !fsdp.buffer<tensor<5x3xf32>>
      %whole = fsdp.buffer "fc.gathered" holds @fc.flat "gathered" offset 448 : !fsdp.buffer<tensor<15xf32>>
      %kernel = fsdp.subview %whole at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<4x3xf32>> loc("fc.kernel")
      %bias = fsdp.subview %whole at 12 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<3xf32>> loc("fc.bias")
      %z = fsdp.buffer "fc.z" offset 512 : !fsdp.buffer<tensor<5x3xf32>>
      %e = fsdp.buffer "fc.error" offset 576 : !fsdp.buffer<tensor<5x3xf32>>
      %sum = fsdp.buffer "loss.sum" offset 640 : !fsdp.buffer<tensor<f64>>
      %total = fsdp.buffer "loss.total" offset 1216 : !fsdp.buffer<tensor<f64>>
      %loss = fsdp.buffer "loss" offset 704 : !fsdp.buffer<tensor<f32>>
      %d = fsdp.buffer "fc.error.grad" offset 768 : !fsdp.buffer<tensor<5x3xf32>>
      %g = fsdp.buffer "fc.grad" holds @fc.flat "gradient" offset 832 : !fsdp.buffer<tensor<15xf32>>
      %gk = fsdp.subview %g at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<4x3xf32>> loc("fc.kernel.grad")
      %gb = fsdp.subview %g at 12 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<3xf32>> loc("fc.bias.grad")
      %gs = fsdp.buffer "fc.grad.shard" offset 896 : !fsdp.buffer<tensor<16xf32>>
      %sq = fsdp.buffer "square_sum" offset 960 : !fsdp.buffer<tensor<f64>>
      %norm = fsdp.buffer "grad_norm" offset 1024 : !fsdp.buffer<tensor<f32>>
      %lr = fsdp.buffer "lr" offset 1088 : !fsdp.buffer<tensor<f32>>
      %ok = fsdp.buffer "ok" offset 1152 : !fsdp.buffer<tensor<i1>>

      %tx = fsdp.launch "x" on "input" outs(%x : !fsdp.buffer<tensor<5x4xf32>>) {
        %v = fsdp.input "x" sample_dim 0 shard_of 9 over ["fsdp"] : tensor<5x4xf32>
        fsdp.yield %v : tensor<5x4xf32>
      }
      %tt = fsdp.launch "target" on "input" outs(%t : !fsdp.buffer<tensor<5x3xf32>>) {
        %v = fsdp.input "y" sample_dim 0 shard_of 9 over ["fsdp"] : tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
      %tg = fsdp.launch "fc.gather" on "gather" of "fc" ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%whole : !fsdp.buffer<tensor<15xf32>>) {
      ^bb0(%a: tensor<16xf32>):
        %v = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<15xf32>
        fsdp.yield %v : tensor<15xf32>
      }
      %tz = fsdp.launch "fc.product" on "compute" of "fc" wait(%tx, %tg) ins(%x, %kernel : !fsdp.buffer<tensor<5x4xf32>>, !fsdp.buffer<tensor<4x3xf32>>) outs(%z : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a: tensor<5x4xf32>, %b: tensor<4x3xf32>):
        %v = nn.einsum "bi,io->bo" %a, %b : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
      %te = fsdp.launch "fc.error" on "compute" of "fc" wait(%tz, %tt) ins(%z, %bias, %t : !fsdp.buffer<tensor<5x3xf32>>, !fsdp.buffer<tensor<3xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%e, %sum : !fsdp.buffer<tensor<5x3xf32>>, !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a: tensor<5x3xf32>, %b: tensor<3xf32>, %c: tensor<5x3xf32>):
        %r:2 = nn.fused %a, %b, %c : (tensor<5x3xf32>, tensor<3xf32>, tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<f64>) {
        ^bb1(%u: tensor<5x3xf32>, %w: tensor<3xf32>, %y: tensor<5x3xf32>):
          %rep = nn.repeat "o -> b o" %w : tensor<3xf32> -> tensor<5x3xf32>
          %pred = arith.addf %u, %rep : tensor<5x3xf32>
          %err = arith.subf %pred, %y : tensor<5x3xf32>
          %mask = fsdp.mask_padding %err dim 0 of 9 over ["fsdp"] fill 0.0 : tensor<5x3xf32>
          %square = arith.mulf %mask, %mask : tensor<5x3xf32>
          %s = nn.reduce sum "b o ->" %square : tensor<5x3xf32> -> tensor<f64>
          nn.yield %mask, %s : tensor<5x3xf32>, tensor<f64>
        }
        fsdp.yield %r#0, %r#1 : tensor<5x3xf32>, tensor<f64>
      }
      %ts = fsdp.launch "loss.total" on "reduce" wait(%te) ins(%sum : !fsdp.buffer<tensor<f64>>) outs(%total : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a: tensor<f64>):
        %v = fsdp.all_reduce sum %a over ["fsdp"] : tensor<f64>
        fsdp.yield %v : tensor<f64>
      }
      %td = fsdp.launch "fc.error.grad" on "compute" of "fc" backward ins(%e : !fsdp.buffer<tensor<5x3xf32>>) outs(%d : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a: tensor<5x3xf32>):
        %c = arith.constant dense<0.0740740746> : tensor<5x3xf32>
        %v = arith.mulf %a, %c : tensor<5x3xf32> loc("fc.error.grad")
        fsdp.yield %v : tensor<5x3xf32>
      }
      %tk = fsdp.launch "fc.kernel.grad" on "compute" of "fc" backward ins(%x, %d : !fsdp.buffer<tensor<5x4xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%gk : !fsdp.buffer<tensor<4x3xf32>>) {
      ^bb0(%a: tensor<5x4xf32>, %b: tensor<5x3xf32>):
        %v = nn.einsum "bi,bo->io" %a, %b : (tensor<5x4xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
        fsdp.yield %v : tensor<4x3xf32>
      }
      %tb = fsdp.launch "fc.bias.grad" on "compute" of "fc" backward ins(%d : !fsdp.buffer<tensor<5x3xf32>>) outs(%gb : !fsdp.buffer<tensor<3xf32>>) {
      ^bb0(%a: tensor<5x3xf32>):
        %v = nn.reduce sum "b o -> o" %a : tensor<5x3xf32> -> tensor<3xf32>
        fsdp.yield %v : tensor<3xf32>
      }
      %tr = fsdp.launch "fc.reduce" on "reduce" of "fc" backward wait(%tb, %tk) ins(%g : !fsdp.buffer<tensor<15xf32>>) outs(%gs : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%a: tensor<15xf32>):
        %v = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<15xf32> -> tensor<16xf32>
        fsdp.yield %v : tensor<16xf32>
      }
      %tq = fsdp.launch "loss" on "compute" wait(%ts) ins(%total : !fsdp.buffer<tensor<f64>>) outs(%loss : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f64>):
        %n = arith.constant dense<27.0> : tensor<f64>
        %q = arith.divf %a, %n : tensor<f64>
        %v = arith.truncf %q : tensor<f64> to tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %to = fsdp.launch "output loss" on "compute" ins(%loss : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "loss" %a
      }
      %tn = fsdp.launch "square_sum" on "compute" of update wait(%tr) ins(%gs : !fsdp.buffer<tensor<16xf32>>) outs(%sq : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a: tensor<16xf32>):
        %v = fsdp.square_sum %a : tensor<16xf32>
        fsdp.yield %v : tensor<f64>
      }
      %tw = fsdp.launch "reduce square_sum" on "reduce" of update wait(%tn) ins(%sq : !fsdp.buffer<tensor<f64>>) outs(%sq : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a: tensor<f64>):
        %v = fsdp.all_reduce sum %a over ["fsdp"] : tensor<f64>
        fsdp.yield %v : tensor<f64>
      }
      %tm = fsdp.launch "grad_norm" on "compute" of update wait(%tw) ins(%sq : !fsdp.buffer<tensor<f64>>) outs(%norm : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f64>):
        %q = math.sqrt %a : tensor<f64>
        %v = arith.truncf %q : tensor<f64> to tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %tp = fsdp.launch "output grad_norm" on "compute" of update ins(%norm : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "grad_norm" %a
      }
      %tl = fsdp.launch "lr" on "compute" of update outs(%lr : !fsdp.buffer<tensor<f32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %v = fsdp.learning_rate <sgd, lr = 0.1, momentum = 0.9>
        fsdp.yield %v : tensor<f32>
      }
      %tlo = fsdp.launch "output lr" on "compute" of update ins(%lr : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a: tensor<f32>):
        fsdp.output "lr" %a
      }
      %tf = fsdp.launch "ok" on "compute" of update ins(%loss, %norm : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) outs(%ok : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %v = fsdp.acceptable %a norm %b
        fsdp.yield %v : tensor<i1>
      }
      %tu = fsdp.launch "fc.update" on "compute" of "fc" update ins(%p, %gs, %m, %lr, %ok : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%p, %m : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>, %c: tensor<16xf32>, %l: tensor<f32>, %k: tensor<i1>):
        %scale = arith.constant dense<1.0> : tensor<f32>
        %u, %v = fsdp.optimizer_step <sgd, lr = 0.1, momentum = 0.9> @fc.flat %a, %b states(%c) lr %l scale %scale if %k : tensor<16xf32> states 1
        fsdp.yield %u, %v : tensor<16xf32>, tensor<16xf32>
      }
      %tv = fsdp.launch "advance" on "compute" of update ins(%ok : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%k: tensor<i1>):
        fsdp.advance if %k
      }
    }
  }
}
