// The collectives of one unit over the same axes are one launch.
// RUN: fsdp-opt --fsdp-schedule --split-input-file %s | FileCheck %s
// RUN: fsdp-opt --fsdp-schedule=group=false --split-input-file %s | FileCheck %s --check-prefix=APART
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase --split-input-file %s -o %t

// Two storages of unit "a", one of them cast before it is gathered, and one of "b". The cast moves before the group.
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[CAST:.*]] = fsdp.launch "truncf" on "gather" of "a"
// CHECK: %[[A:.*]] = fsdp.launch "a all_gather" on "gather" of "a" ins(%{{.*}}, %{{.*}} : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<6xbf16>>) outs(%{{.*}}, %{{.*}} : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<12xbf16>>) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<6xbf16>):
// CHECK-NEXT: %[[U:.*]] = fsdp.all_gather %[[X]] dim 0 over ["fsdp"]
// CHECK-NEXT: %[[V:.*]] = fsdp.all_gather %[[Y]] dim 0 over ["fsdp"]
// CHECK-NEXT: fsdp.yield %[[U]], %[[V]] : tensor<8xf32>, tensor<12xbf16>
// CHECK: fsdp.launch "b.flat all_gather" on "gather" of "b"
// CHECK: fsdp.launch "negf" on "compute" of "a" wait(%[[A]])
// CHECK-NOT: on "gather"
// The first reduction waits for the gradient of the second. What follows the first, a sum over replicas, follows the group.
// CHECK: %[[D:.*]] = fsdp.launch "absf 2" on "compute" of "a" backward
// CHECK: fsdp.launch "a reduce_scatter" on "reduce" of "a" backward wait(%[[D]]) ins(
// CHECK: fsdp.launch "all_reduce" on "reduce" of "a" backward ins(
// CHECK: fsdp.launch "all_reduce 2" on "reduce" of "a" backward ins(

// APART: fsdp.launch "a.flat all_gather" on "gather" of "a"
// APART: fsdp.launch "a.flat.tensor all_gather" on "gather" of "a"
// APART: fsdp.launch "reduce_scatter" on "reduce" of "a" backward
// APART: fsdp.launch "all_reduce" on "reduce" of "a" backward
// APART: fsdp.launch "reduce_scatter 2" on "reduce" of "a" backward
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
  fsdp.param @n : tensor<8xf32> unit "a" init <constant, 1.0>
  fsdp.param @w : tensor<12xf32> unit "a" init <constant, 1.0>
  fsdp.param @v : tensor<8xf32> unit "b" init <constant, 1.0>
  fsdp.storage @a.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@n at 0>]
  fsdp.storage @a.flat.tensor : tensor<6xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
  fsdp.storage @b.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@v at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %s = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %n = fsdp.all_gather %s dim 0 over ["fsdp"] {fsdp.gathers = @a.flat, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<8xf32>
      %x = arith.negf %n {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
      %p = fsdp.load @a.flat.tensor "parameter" : tensor<6xf32>
      %c = arith.truncf %p {fsdp.gathers = @a.flat.tensor, fsdp.structure = #fsdp.structure<"a">} : tensor<6xf32> to tensor<6xbf16>
      %w = fsdp.all_gather %c dim 0 over ["fsdp"] {fsdp.gathers = @a.flat.tensor, fsdp.structure = #fsdp.structure<"a">} : tensor<6xbf16> -> tensor<12xbf16>
      %wide = arith.extf %w {fsdp.structure = #fsdp.structure<"a">} : tensor<12xbf16> to tensor<12xf32>
      %t = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %v = fsdp.all_gather %t dim 0 over ["fsdp"] {fsdp.gathers = @b.flat, fsdp.structure = #fsdp.structure<"b">} : tensor<4xf32> -> tensor<8xf32>
      %y = arith.mulf %x, %v {fsdp.structure = #fsdp.structure<"b">} : tensor<8xf32>
      %dw = math.absf %wide {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<12xf32>
      %rw = fsdp.reduce_scatter %dw dim 0 over ["fsdp"] {fsdp.reduces = @a.flat.tensor, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<12xf32> -> tensor<6xf32>
      %aw = fsdp.all_reduce sum %rw over ["data"] {fsdp.reduces = @a.flat.tensor, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<6xf32>
      %dn = math.absf %y {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<8xf32>
      %rn = fsdp.reduce_scatter %dn dim 0 over ["fsdp"] {fsdp.reduces = @a.flat, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<8xf32> -> tensor<4xf32>
      %an = fsdp.all_reduce sum %rn over ["data"] {fsdp.reduces = @a.flat, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<4xf32>
    }
  }
}

// -----

// Not grouped: gathers over other axes; what another unit's gather stands between; the second gather of a storage; a gather of
// what is computed from the first one.
// CHECK-LABEL: fsdp.segment @apart
// CHECK-NOT: fsdp.launch "a all_gather"
// CHECK: fsdp.yield %{{[^,]*}} : tensor<8xf32>
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
  fsdp.param @n : tensor<8xf32> unit "a" init <constant, 1.0>
  fsdp.param @w : tensor<8xf32> unit "a" init <constant, 1.0>
  fsdp.param @z : tensor<8xf32> unit "a" init <constant, 1.0>
  fsdp.param @v : tensor<8xf32> unit "b" init <constant, 1.0>
  fsdp.storage @a.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@n at 0>]
  fsdp.storage @a.flat.data : tensor<4xf32> flat over ["data"] states [] members [#fsdp.member<@w at 0>]
  fsdp.storage @a.last : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@z at 0>]
  fsdp.storage @b.flat : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@v at 0>]
  fsdp.program @all role {} {
    fsdp.segment @apart train next [@apart] {
      %s = fsdp.load @a.flat "parameter" : tensor<4xf32>
      %n = fsdp.all_gather %s dim 0 over ["fsdp"] {fsdp.gathers = @a.flat, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<8xf32>
      %p = fsdp.load @a.flat.data "parameter" : tensor<4xf32>
      %w = fsdp.all_gather %p dim 0 over ["data"] {fsdp.gathers = @a.flat.data, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<8xf32>
      %x = arith.addf %n, %w {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
      %again = fsdp.all_gather %s dim 0 over ["fsdp"] {fsdp.gathers = @a.flat, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<8xf32>
      %y = arith.mulf %x, %again {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
      %t = fsdp.load @b.flat "parameter" : tensor<4xf32>
      %v = fsdp.all_gather %t dim 0 over ["fsdp"] {fsdp.gathers = @b.flat, fsdp.structure = #fsdp.structure<"b">} : tensor<4xf32> -> tensor<8xf32>
      %q = fsdp.load @a.last "parameter" : tensor<4xf32>
      %z = fsdp.all_gather %q dim 0 over ["fsdp"] {fsdp.gathers = @a.last, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> -> tensor<8xf32>
      %a = arith.addf %y, %v {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
      %b = arith.addf %a, %z {fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32>
    }
  }
}
