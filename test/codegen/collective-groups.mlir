// Collectives that ranks meet in once: one call of both targets, one action of the record.
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s > %t.scheduled
// RUN: fsdp-translate --fsdp-to-cpp %t.scheduled | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t.scheduled | FileCheck %s
// RUN: fsdp-translate --fsdp-to-record %t.scheduled | FileCheck %s --check-prefix=RECORD

// CHECK: collective_group(c, kGather, "a all_gather", kOverFsdpGather,
// CHECK-NEXT: all_gather(ShardLayout{/*outer=*/1, /*local=*/4, /*inner=*/1, /*total=*/7},
// CHECK-NEXT: persistent::a_flat_parameter, arena::a_flat_all_gather),
// CHECK-NEXT: all_gather(ShardLayout{/*outer=*/1, /*local=*/6, /*inner=*/1, /*total=*/12},
// CHECK-NEXT: persistent::a_flat_tensor_parameter, arena::a_flat_tensor_all_gather));
// CHECK-NEXT: record(c, kGather,
// CHECK: collective_group(c, kReduce, "a reduce_scatter", kOverFsdpReduce,
// CHECK-NEXT: reduce_scatter(ShardLayout{/*outer=*/1, /*local=*/4, /*inner=*/1, /*total=*/7}, arena::sin,
// CHECK-NEXT: arena::reduce_scatter),
// CHECK-NEXT: reduce_scatter(ShardLayout{/*outer=*/1, /*local=*/6, /*inner=*/1, /*total=*/12}, arena::sin_2,
// CHECK-NEXT: arena::reduce_scatter_2));

// RECORD: launch gather "a all_gather" reads=[{{[0-9]+:16,[0-9]+:24}}] writes=[{{[0-9]+:28,[0-9]+:48}}] over=fsdp_gather kind=all_gather
// RECORD: launch reduce "a reduce_scatter" reads=[{{[0-9]+:28,[0-9]+:48}}] writes=[{{[0-9]+:16,[0-9]+:24}}] over=fsdp_reduce kind=reduce_scatter

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @n : tensor<7xf32> unit "a" init <constant, 1.0>
  fsdp.param @w : tensor<12xf32> unit "a" init <constant, 1.0>
  fsdp.storage @a.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@n at 0>]
  fsdp.storage @a.flat.tensor : tensor<6xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %one = arith.constant dense<1.0> : tensor<f32>
      %s = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %n = fsdp.all_gather %s dim 0 over ["fsdp"] {fsdp.gathers = @a.flat, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<7xf32>
      %p = fsdp.load @a.flat.tensor "parameter" : tensor<6xf32>
      %w = fsdp.all_gather %p dim 0 over ["fsdp"] {fsdp.gathers = @a.flat.tensor, fsdp.structure = #fsdp.structure<"a">} : tensor<6xf32> -> tensor<12xf32>
      %dn = math.sin %n {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<7xf32>
      %dw = math.sin %w {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<12xf32>
      %rn = fsdp.reduce_scatter %dn dim 0 over ["fsdp"] {fsdp.reduces = @a.flat, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<7xf32> -> tensor<4xf32>
      %rw = fsdp.reduce_scatter %dw dim 0 over ["fsdp"] {fsdp.reduces = @a.flat.tensor, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<12xf32> -> tensor<6xf32>
      %sum = nn.reduce sum "r ->" %w : tensor<12xf32> -> tensor<f32> loc("loss")
      fsdp.output "loss" %sum
      %ok = fsdp.acceptable %sum norm %sum
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      %sn = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %nn = fsdp.optimizer_step <sgd, lr = 0.1> @a.flat %sn, %rn states() lr %lr scale %one if %ok {fsdp.structure = #fsdp.structure<"a" update>} : tensor<4xf32> states 0
      fsdp.store %nn, @a.flat "parameter" : tensor<4xf32>
      %sw = fsdp.load @a.flat.tensor "parameter" : tensor<6xf32>
      %nw = fsdp.optimizer_step <sgd, lr = 0.1> @a.flat.tensor %sw, %rw states() lr %lr scale %one if %ok {fsdp.structure = #fsdp.structure<"a" update>} : tensor<6xf32> states 0
      fsdp.store %nw, @a.flat.tensor "parameter" : tensor<6xf32>
      fsdp.advance if %ok
    }
  }
}
