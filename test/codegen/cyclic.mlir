// Gradient accumulation over four microbatches, each a run of a segment that is not joined. Events of the program have
// numbers before those of segments; outputs are numbered over the walk.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s

// What the program writes down of itself is what is read off the IR.
// RUN: fsdp-translate --fsdp-to-record %s > %t.expected
// RUN: FileCheck %s --check-prefix=RECORD < %t.expected
// RUN: fsdp-translate --fsdp-to-cpp %s > %t.cpp
// RUN: g++ -std=c++20 -O0 -DFSDP_RECORD -I %{root} %t.cpp -o %t.record
// RUN: %t.record | diff - %t.expected
// RUN: fsdp-translate --fsdp-to-cuda %s > %t.cuda.cpp
// RUN: g++ -std=c++20 -O0 -DFSDP_RECORD -I %{root} %t.cuda.cpp -o %t.cuda.record
// RUN: %t.cuda.record | diff - %t.expected

// CHECK:       enum : int { kEventWUpdated, kEventConsumed, kEventSummed, kProgramEvents };
// CHECK-LABEL: namespace first {
// CHECK:       enum : int { kDoneY = kProgramEvents, kDoneWGather };
// CHECK:       wait(c, kInput, kEventConsumed);
// CHECK-NEXT:  load_input(c, kInput, "x", kInputX, arena::x);
// CHECK-NEXT:  load_input(c, kInput, "y", kInputY, arena::y);
// CHECK-NEXT:  record(c, kInput, kDoneY);
// CHECK-NEXT:  wait(c, kGather, kEventWUpdated);
// CHECK-NEXT:  wait(c, kGather, kEventConsumed);
// CHECK:       record(c, kCompute, kEventSummed);
// CHECK-LABEL: namespace last {
// CHECK:       enum : int { kOutputLoss };
// CHECK-LABEL: namespace update {
// CHECK:       enum : int { kOutputGradNorm = 1, kOutputLr };
// CHECK:       record(c, kCompute, kEventWUpdated);
// CHECK-NEXT:  record(c, kCompute, kEventConsumed);
// CHECK:       .batch = 4, .rows = 1,
// CHECK-NEXT:  .source = Source::Tensor, .parts = 4},
// CHECK:       constexpr Segment segments[] = {
// CHECK-NEXT:  {.name = "first", .run = first::run, .joined = false, .trace = first::trace},
// CHECK:       {.name = "squares", .run = squares::run, .trace = squares::trace},
// CHECK:       constexpr SegmentRuns train_runs[] = {
// CHECK-NEXT:  {.segment = 0, .times = 1},
// CHECK-NEXT:  {.segment = 1, .times = 2},
// CHECK-NEXT:  {.segment = 2, .times = 1},
// CHECK-NEXT:  {.segment = 3, .times = 1},
// CHECK:       constexpr const char *train_outputs[] = {"loss", "grad_norm", "lr"};
// CHECK-NEXT:  constexpr SegmentRuns evaluate_runs[] = {
// CHECK-NEXT:  {.segment = 4, .times = 1},
// CHECK:       constexpr const char *evaluate_outputs[] = {"loss"};
// CHECK:       .events = 6,
// CHECK:       .train = {.name = "train", .runs = train_runs, .outputs = train_outputs},
// CHECK-NEXT:  .evaluate = {.name = "evaluate", .runs = evaluate_runs, .outputs = evaluate_outputs},

// RECORD:      segment first
// RECORD-NEXT: wait input 1
// RECORD-NEXT: launch input "x" reads=[] writes=[512:20]
// RECORD:      record gather 4
// RECORD-NEXT: wait compute 3
// RECORD-NEXT: wait compute 4
// RECORD:      segment middle
// RECORD:      segment update
// RECORD:      launch compute "w.update"
// RECORD-NEXT: record compute 0
// RECORD-NEXT: record compute 1

module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<5x3xf32> unit "w" init <constant, 0.5>
  fsdp.storage @w.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} arena 1024 {
    %state = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    %p = fsdp.buffer "w.parameter" persistent holds @w.flat "parameter" offset 128 : !fsdp.buffer<tensor<16xf32>>
    %acc = fsdp.buffer "w.accumulator" persistent holds @w.flat "accumulator" offset 256 : !fsdp.buffer<tensor<15xf32>>
    %sum = fsdp.buffer "loss.accumulator" persistent offset 384 : !fsdp.buffer<tensor<f64>>
    %updated = fsdp.event "w.updated"
    %consumed = fsdp.event "consumed"
    %summed = fsdp.event "summed"
    fsdp.walk @train train [@first, @middle, @last, @update] times [1, 2, 1, 1]
    fsdp.walk @evaluate evaluate [@squares] times [1]
    fsdp.segment @first train async next [@middle] {
      %x = fsdp.buffer "x" offset 512 : !fsdp.buffer<tensor<1x5xf32>>
      %y = fsdp.buffer "y" offset 576 : !fsdp.buffer<tensor<1x3xf32>>
      %f = fsdp.buffer "w.gathered" offset 640 : !fsdp.buffer<tensor<15xf32>>
      %w = fsdp.subview %f at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<5x3xf32>>
      %z = fsdp.buffer "z" offset 704 : !fsdp.buffer<tensor<1x3xf32>>
      %e = fsdp.buffer "error" offset 768 : !fsdp.buffer<tensor<1x3xf32>>
      %g = fsdp.buffer "gradient" offset 832 : !fsdp.buffer<tensor<5x3xf32>>
      %accw = fsdp.subview %acc at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<5x3xf32>>
      %t0 = fsdp.launch "x" on "input" wait(%consumed) outs(%x : !fsdp.buffer<tensor<1x5xf32>>) {
        %v = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x5xf32>
        fsdp.yield %v : tensor<1x5xf32>
      }
      %t1 = fsdp.launch "y" on "input" outs(%y : !fsdp.buffer<tensor<1x3xf32>>) {
        %v = fsdp.input "y" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x3xf32>
        fsdp.yield %v : tensor<1x3xf32>
      }
      %t2 = fsdp.launch "w.gather" on "gather" of "w" forward wait(%updated, %consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<15xf32>>) {
      ^bb0(%a0: tensor<16xf32>):
        %v = fsdp.all_gather %a0 dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<15xf32>
        fsdp.yield %v : tensor<15xf32>
      }
      %t3 = fsdp.launch "w.product" on "compute" of "w" forward wait(%t1, %t2) ins(%x, %w : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%z : !fsdp.buffer<tensor<1x3xf32>>) {
      ^bb0(%a0: tensor<1x5xf32>, %a1: tensor<5x3xf32>):
        %v = nn.einsum "bi,io->bo" %a0, %a1 : (tensor<1x5xf32>, tensor<5x3xf32>) -> tensor<1x3xf32>
        fsdp.yield %v : tensor<1x3xf32>
      }
      %t4 = fsdp.launch "w.error" on "compute" of "w" forward ins(%z, %y : !fsdp.buffer<tensor<1x3xf32>>, !fsdp.buffer<tensor<1x3xf32>>) outs(%e, %sum : !fsdp.buffer<tensor<1x3xf32>>, !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<1x3xf32>, %a1: tensor<1x3xf32>):
        %d = arith.subf %a0, %a1 : tensor<1x3xf32>
        %s = arith.mulf %d, %d : tensor<1x3xf32>
        %t = nn.reduce sum "b o ->" %s : tensor<1x3xf32> -> tensor<f64>
        fsdp.yield %d, %t : tensor<1x3xf32>, tensor<f64>
      }
      %t6 = fsdp.launch "w.gradient" on "compute" of "w" backward records(%consumed) ins(%x, %e : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<1x3xf32>>) outs(%g : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a0: tensor<1x5xf32>, %a1: tensor<1x3xf32>):
        %v = nn.einsum "bi,bo->io" %a0, %a1 : (tensor<1x5xf32>, tensor<1x3xf32>) -> tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
      %t7 = fsdp.launch "w.start" on "compute" of "w" backward records(%summed) ins(%g : !fsdp.buffer<tensor<5x3xf32>>) outs(%accw : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a0: tensor<5x3xf32>):
        %k = arith.constant dense<0.166666672> : tensor<5x3xf32>
        %v = arith.mulf %a0, %k : tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
    }
    fsdp.segment @middle train async next [@middle, @last] {
      %x = fsdp.buffer "x" offset 512 : !fsdp.buffer<tensor<1x5xf32>>
      %y = fsdp.buffer "y" offset 576 : !fsdp.buffer<tensor<1x3xf32>>
      %f = fsdp.buffer "w.gathered" offset 640 : !fsdp.buffer<tensor<15xf32>>
      %w = fsdp.subview %f at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<5x3xf32>>
      %z = fsdp.buffer "z" offset 704 : !fsdp.buffer<tensor<1x3xf32>>
      %e = fsdp.buffer "error" offset 768 : !fsdp.buffer<tensor<1x3xf32>>
      %g = fsdp.buffer "gradient" offset 832 : !fsdp.buffer<tensor<5x3xf32>>
      %accw = fsdp.subview %acc at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<5x3xf32>>
      %t0 = fsdp.launch "x" on "input" wait(%consumed) outs(%x : !fsdp.buffer<tensor<1x5xf32>>) {
        %v = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x5xf32>
        fsdp.yield %v : tensor<1x5xf32>
      }
      %t1 = fsdp.launch "y" on "input" outs(%y : !fsdp.buffer<tensor<1x3xf32>>) {
        %v = fsdp.input "y" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x3xf32>
        fsdp.yield %v : tensor<1x3xf32>
      }
      %t2 = fsdp.launch "w.gather" on "gather" of "w" forward wait(%consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<15xf32>>) {
      ^bb0(%a0: tensor<16xf32>):
        %v = fsdp.all_gather %a0 dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<15xf32>
        fsdp.yield %v : tensor<15xf32>
      }
      %t3 = fsdp.launch "w.product" on "compute" of "w" forward wait(%t1, %t2) ins(%x, %w : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%z : !fsdp.buffer<tensor<1x3xf32>>) {
      ^bb0(%a0: tensor<1x5xf32>, %a1: tensor<5x3xf32>):
        %v = nn.einsum "bi,io->bo" %a0, %a1 : (tensor<1x5xf32>, tensor<5x3xf32>) -> tensor<1x3xf32>
        fsdp.yield %v : tensor<1x3xf32>
      }
      %part = fsdp.buffer "loss.part" offset 896 : !fsdp.buffer<tensor<f64>>
      %t4 = fsdp.launch "w.error" on "compute" of "w" forward ins(%z, %y : !fsdp.buffer<tensor<1x3xf32>>, !fsdp.buffer<tensor<1x3xf32>>) outs(%e, %part : !fsdp.buffer<tensor<1x3xf32>>, !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<1x3xf32>, %a1: tensor<1x3xf32>):
        %d = arith.subf %a0, %a1 : tensor<1x3xf32>
        %s = arith.mulf %d, %d : tensor<1x3xf32>
        %t = nn.reduce sum "b o ->" %s : tensor<1x3xf32> -> tensor<f64>
        fsdp.yield %d, %t : tensor<1x3xf32>, tensor<f64>
      }
      %t5 = fsdp.launch "loss.add" on "compute" ins(%sum, %part : !fsdp.buffer<tensor<f64>>, !fsdp.buffer<tensor<f64>>) outs(%sum : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<f64>, %a1: tensor<f64>):
        %v = arith.addf %a0, %a1 : tensor<f64>
        fsdp.yield %v : tensor<f64>
      }
      %t6 = fsdp.launch "w.gradient" on "compute" of "w" backward records(%consumed) ins(%x, %e : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<1x3xf32>>) outs(%g : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a0: tensor<1x5xf32>, %a1: tensor<1x3xf32>):
        %v = nn.einsum "bi,bo->io" %a0, %a1 : (tensor<1x5xf32>, tensor<1x3xf32>) -> tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
      %t7 = fsdp.launch "w.add" on "compute" of "w" backward records(%summed) ins(%accw, %g : !fsdp.buffer<tensor<5x3xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%accw : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a0: tensor<5x3xf32>, %a1: tensor<5x3xf32>):
        %k = arith.constant dense<0.166666672> : tensor<5x3xf32>
        %u = arith.mulf %a1, %k : tensor<5x3xf32>
        %v = arith.addf %a0, %u : tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
    }
    fsdp.segment @last train async next [@update] {
      %x = fsdp.buffer "x" offset 512 : !fsdp.buffer<tensor<1x5xf32>>
      %y = fsdp.buffer "y" offset 576 : !fsdp.buffer<tensor<1x3xf32>>
      %f = fsdp.buffer "w.gathered" offset 640 : !fsdp.buffer<tensor<15xf32>>
      %w = fsdp.subview %f at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<5x3xf32>>
      %z = fsdp.buffer "z" offset 704 : !fsdp.buffer<tensor<1x3xf32>>
      %e = fsdp.buffer "error" offset 768 : !fsdp.buffer<tensor<1x3xf32>>
      %g = fsdp.buffer "gradient" offset 832 : !fsdp.buffer<tensor<5x3xf32>>
      %accw = fsdp.subview %acc at 0 : !fsdp.buffer<tensor<15xf32>> -> !fsdp.buffer<tensor<5x3xf32>>
      %t0 = fsdp.launch "x" on "input" wait(%consumed) outs(%x : !fsdp.buffer<tensor<1x5xf32>>) {
        %v = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x5xf32>
        fsdp.yield %v : tensor<1x5xf32>
      }
      %t1 = fsdp.launch "y" on "input" outs(%y : !fsdp.buffer<tensor<1x3xf32>>) {
        %v = fsdp.input "y" sample_dim 0 shard_of 4 over [] microbatches 4 : tensor<1x3xf32>
        fsdp.yield %v : tensor<1x3xf32>
      }
      %t2 = fsdp.launch "w.gather" on "gather" of "w" forward wait(%consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<15xf32>>) {
      ^bb0(%a0: tensor<16xf32>):
        %v = fsdp.all_gather %a0 dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<15xf32>
        fsdp.yield %v : tensor<15xf32>
      }
      %t3 = fsdp.launch "w.product" on "compute" of "w" forward wait(%t1, %t2) ins(%x, %w : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%z : !fsdp.buffer<tensor<1x3xf32>>) {
      ^bb0(%a0: tensor<1x5xf32>, %a1: tensor<5x3xf32>):
        %v = nn.einsum "bi,io->bo" %a0, %a1 : (tensor<1x5xf32>, tensor<5x3xf32>) -> tensor<1x3xf32>
        fsdp.yield %v : tensor<1x3xf32>
      }
      %part = fsdp.buffer "loss.part" offset 896 : !fsdp.buffer<tensor<f64>>
      %t4 = fsdp.launch "w.error" on "compute" of "w" forward ins(%z, %y : !fsdp.buffer<tensor<1x3xf32>>, !fsdp.buffer<tensor<1x3xf32>>) outs(%e, %part : !fsdp.buffer<tensor<1x3xf32>>, !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<1x3xf32>, %a1: tensor<1x3xf32>):
        %d = arith.subf %a0, %a1 : tensor<1x3xf32>
        %s = arith.mulf %d, %d : tensor<1x3xf32>
        %t = nn.reduce sum "b o ->" %s : tensor<1x3xf32> -> tensor<f64>
        fsdp.yield %d, %t : tensor<1x3xf32>, tensor<f64>
      }
      %t5 = fsdp.launch "loss.add" on "compute" ins(%sum, %part : !fsdp.buffer<tensor<f64>>, !fsdp.buffer<tensor<f64>>) outs(%sum : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<f64>, %a1: tensor<f64>):
        %v = arith.addf %a0, %a1 : tensor<f64>
        fsdp.yield %v : tensor<f64>
      }
      %t6 = fsdp.launch "w.gradient" on "compute" of "w" backward records(%consumed) ins(%x, %e : !fsdp.buffer<tensor<1x5xf32>>, !fsdp.buffer<tensor<1x3xf32>>) outs(%g : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a0: tensor<1x5xf32>, %a1: tensor<1x3xf32>):
        %v = nn.einsum "bi,bo->io" %a0, %a1 : (tensor<1x5xf32>, tensor<1x3xf32>) -> tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
      %t7 = fsdp.launch "w.add" on "compute" of "w" backward records(%summed) ins(%accw, %g : !fsdp.buffer<tensor<5x3xf32>>, !fsdp.buffer<tensor<5x3xf32>>) outs(%accw : !fsdp.buffer<tensor<5x3xf32>>) {
      ^bb0(%a0: tensor<5x3xf32>, %a1: tensor<5x3xf32>):
        %k = arith.constant dense<0.166666672> : tensor<5x3xf32>
        %u = arith.mulf %a1, %k : tensor<5x3xf32>
        %v = arith.addf %a0, %u : tensor<5x3xf32>
        fsdp.yield %v : tensor<5x3xf32>
      }
      %loss = fsdp.buffer "loss" offset 960 : !fsdp.buffer<tensor<f32>>
      %t8 = fsdp.launch "loss" on "compute" ins(%sum : !fsdp.buffer<tensor<f64>>) outs(%loss : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a0: tensor<f64>):
        %n = arith.constant dense<12.0> : tensor<f64>
        %q = arith.divf %a0, %n : tensor<f64>
        %v = arith.truncf %q : tensor<f64> to tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %t9 = fsdp.launch "output loss" on "compute" ins(%loss : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a0: tensor<f32>):
        fsdp.output "loss" %a0
      }
    }
    fsdp.segment @update train async next [@first, @squares] {
      %gs = fsdp.buffer "w.gradient.shard" offset 512 : !fsdp.buffer<tensor<16xf32>>
      %sq = fsdp.buffer "square_sum" offset 576 : !fsdp.buffer<tensor<f64>>
      %norm = fsdp.buffer "grad_norm" offset 640 : !fsdp.buffer<tensor<f32>>
      %lr = fsdp.buffer "learning_rate" offset 704 : !fsdp.buffer<tensor<f32>>
      %ok = fsdp.buffer "ok" offset 768 : !fsdp.buffer<tensor<i1>>
      %t0 = fsdp.launch "w.reduce" on "reduce" of "w" backward wait(%summed, %consumed) ins(%acc : !fsdp.buffer<tensor<15xf32>>) outs(%gs : !fsdp.buffer<tensor<16xf32>>) {
      ^bb0(%a0: tensor<15xf32>):
        %v = fsdp.reduce_scatter %a0 dim 0 over ["fsdp"] : tensor<15xf32> -> tensor<16xf32>
        fsdp.yield %v : tensor<16xf32>
      }
      %t1 = fsdp.launch "square_sum" on "compute" of update wait(%t0) ins(%gs : !fsdp.buffer<tensor<16xf32>>) outs(%sq : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<16xf32>):
        %v = fsdp.square_sum %a0 : tensor<16xf32>
        fsdp.yield %v : tensor<f64>
      }
      %t2 = fsdp.launch "square_sum.reduce" on "reduce" of update wait(%t1) ins(%sq : !fsdp.buffer<tensor<f64>>) outs(%sq : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<f64>):
        %v = fsdp.all_reduce sum %a0 over ["fsdp"] : tensor<f64>
        fsdp.yield %v : tensor<f64>
      }
      %t3 = fsdp.launch "grad_norm" on "compute" of update wait(%t2) ins(%sq : !fsdp.buffer<tensor<f64>>) outs(%norm : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a0: tensor<f64>):
        %q = math.sqrt %a0 : tensor<f64>
        %v = arith.truncf %q : tensor<f64> to tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %t4 = fsdp.launch "output grad_norm" on "compute" of update ins(%norm : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a0: tensor<f32>):
        fsdp.output "grad_norm" %a0
      }
      %t5 = fsdp.launch "learning_rate" on "compute" of update outs(%lr : !fsdp.buffer<tensor<f32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
        %v = fsdp.learning_rate <sgd, lr = 0.1>
        fsdp.yield %v : tensor<f32>
      }
      %t6 = fsdp.launch "output lr" on "compute" of update ins(%lr : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%a0: tensor<f32>):
        fsdp.output "lr" %a0
      }
      %t7 = fsdp.launch "ok" on "compute" of update ins(%lr, %norm : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) outs(%ok : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a0: tensor<f32>, %a1: tensor<f32>):
        %v = fsdp.acceptable %a0 norm %a1
        fsdp.yield %v : tensor<i1>
      }
      %t8 = fsdp.launch "w.update" on "compute" of "w" update records(%updated, %consumed) ins(%p, %gs, %lr, %ok : !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<16xf32>>, !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<i1>>) outs(%p : !fsdp.buffer<tensor<16xf32>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a0: tensor<16xf32>, %a1: tensor<16xf32>, %a2: tensor<f32>, %a3: tensor<i1>):
        %scale = arith.constant dense<1.0> : tensor<f32>
        %v = fsdp.optimizer_step <sgd, lr = 0.1> @w.flat %a0, %a1 states() lr %a2 scale %scale if %a3 : tensor<16xf32> states 0
        fsdp.yield %v : tensor<16xf32>
      }
      %t9 = fsdp.launch "advance" on "compute" of update ins(%ok : !fsdp.buffer<tensor<i1>>) step_state(%state : !fsdp.buffer<tensor<16xi64>>) {
      ^bb0(%a0: tensor<i1>):
        fsdp.advance if %a0
      }
    }
    fsdp.segment @squares evaluate next [@first, @squares] {
      %f = fsdp.buffer "w.gathered" offset 640 : !fsdp.buffer<tensor<15xf32>>
      %sq = fsdp.buffer "square_sum" offset 576 : !fsdp.buffer<tensor<f64>>
      %one = fsdp.buffer "weight" offset 704 : !fsdp.buffer<tensor<f64>>
      %t0 = fsdp.launch "w.gather" on "gather" of "w" forward wait(%updated, %consumed) ins(%p : !fsdp.buffer<tensor<16xf32>>) outs(%f : !fsdp.buffer<tensor<15xf32>>) {
      ^bb0(%a0: tensor<16xf32>):
        %v = fsdp.all_gather %a0 dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<15xf32>
        fsdp.yield %v : tensor<15xf32>
      }
      %t1 = fsdp.launch "squares" on "compute" wait(%t0) ins(%f : !fsdp.buffer<tensor<15xf32>>) outs(%sq : !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<15xf32>):
        %s = arith.mulf %a0, %a0 : tensor<15xf32>
        %t = nn.reduce sum "i ->" %s : tensor<15xf32> -> tensor<f64>
        fsdp.yield %t : tensor<f64>
      }
      %t2 = fsdp.launch "weight" on "compute" outs(%one : !fsdp.buffer<tensor<f64>>) {
        %u = arith.constant dense<1.0> : tensor<f64>
        fsdp.yield %u : tensor<f64>
      }
      %t3 = fsdp.launch "output loss" on "compute" ins(%sq, %one : !fsdp.buffer<tensor<f64>>, !fsdp.buffer<tensor<f64>>) {
      ^bb0(%a0: tensor<f64>, %a1: tensor<f64>):
        fsdp.output_sum "loss" %a0 over %a1
      }
    }
  }
}
