// Gathers are issued in the order in which their units are needed, not in that in which they stand: '@a' is gathered before
// '@b' and used after it, where its gather has to wait until '@c' has been used to the end, which is behind the use of '@b'.
// RUN: fsdp-opt --fsdp-schedule=prefetch=0 --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s | FileCheck %s

// CHECK: fsdp.launch "c.flat all_gather" on "gather"
// CHECK: fsdp.launch "b.flat all_gather" on "gather"
// CHECK: fsdp.launch "first" on "compute"
// CHECK: fsdp.launch "second" on "compute"
// CHECK: fsdp.launch "third" on "compute"
// CHECK: fsdp.launch "a.flat all_gather" on "gather"
// CHECK: fsdp.launch "fourth" on "compute"
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @a : tensor<32xf32> unit "a" init <constant, 0.0>
  fsdp.param @b : tensor<32xf32> unit "b" init <constant, 0.0>
  fsdp.param @c : tensor<32xf32> unit "c" init <constant, 0.0>
  fsdp.storage @a.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@a at 0>]
  fsdp.storage @b.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@b at 0>]
  fsdp.storage @c.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@c at 0>]
  fsdp.program @all role {} {
    fsdp.segment @evaluate evaluate next [@evaluate] {
      %cs = fsdp.load @c.flat "parameter" : tensor<16xf32>
      %c = fsdp.all_gather %cs dim 0 over ["fsdp"] {fsdp.gathers = @c.flat, fsdp.structure = #fsdp.structure<"c">} : tensor<16xf32> -> tensor<32xf32> loc("c.flat")
      %as = fsdp.load @a.flat "parameter" : tensor<16xf32>
      %a = fsdp.all_gather %as dim 0 over ["fsdp"] {fsdp.gathers = @a.flat, fsdp.structure = #fsdp.structure<"a">} : tensor<16xf32> -> tensor<32xf32> loc("a.flat")
      %bs = fsdp.load @b.flat "parameter" : tensor<16xf32>
      %b = fsdp.all_gather %bs dim 0 over ["fsdp"] {fsdp.gathers = @b.flat, fsdp.structure = #fsdp.structure<"b">} : tensor<16xf32> -> tensor<32xf32> loc("b.flat")
      %1 = math.tanh %c : tensor<32xf32> loc("first")
      %2 = arith.addf %1, %b : tensor<32xf32> loc("second")
      %3 = arith.addf %2, %c : tensor<32xf32> loc("third")
      %4 = arith.addf %3, %a : tensor<32xf32> loc("fourth")
      %sum = nn.reduce sum "i ->" %4 : tensor<32xf32> -> tensor<f64>
      %all = fsdp.all_reduce sum %sum over ["fsdp"] : tensor<f64>
      %one = arith.constant dense<1.0> : tensor<f64>
      fsdp.output_sum "loss" %all over %one
    }
  }
}
