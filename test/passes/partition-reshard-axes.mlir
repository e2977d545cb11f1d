// Between any two shardings over four axes no rank holds more than its larger shard: no value is gathered whole, though
// most of these moves are over several axes at once.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>/dev/null | FileCheck %s --implicit-check-not='-> tensor<16x16x16xf32>'
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: sed 's/"c"=2/"c"=3/' %s > %t.uneven.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.uneven.mlir %t.uneven

// CHECK-LABEL: fsdp.segment @train
fsdp.mesh @mesh <["a"=2, "b"=2, "c"=2, "d"=2]>
fsdp.param @w : tensor<16xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<16x16x16xf32> loc("x")
  %w = fsdp.read @w : tensor<16xf32>
  %r = nn.repeat "c -> a b c" %w : tensor<16xf32> -> tensor<16x16x16xf32>
  %c0 = fsdp.constraint %x <@mesh, [{"c"}, {"a"}, {"b"}]> : tensor<16x16x16xf32>
  %c1 = fsdp.constraint %c0 <@mesh, [{}, {"b"}, {"a"}]> : tensor<16x16x16xf32>
  %t1 = math.tanh %c1 : tensor<16x16x16xf32>
  %c2 = fsdp.constraint %t1 <@mesh, [{"c"}, {"a", "b", "d"}, {}]> : tensor<16x16x16xf32>
  %c3 = fsdp.constraint %c2 <@mesh, [{"a", "b"}, {}, {}]> : tensor<16x16x16xf32>
  %t3 = math.tanh %c3 : tensor<16x16x16xf32>
  %c4 = fsdp.constraint %t3 <@mesh, [{}, {"d"}, {}]> : tensor<16x16x16xf32>
  %c5 = fsdp.constraint %c4 <@mesh, [{"a"}, {"b", "c"}, {}]> : tensor<16x16x16xf32>
  %t5 = math.tanh %c5 : tensor<16x16x16xf32>
  %c6 = fsdp.constraint %t5 <@mesh, [{}, {"d"}, {"a", "c"}]> : tensor<16x16x16xf32>
  %c7 = fsdp.constraint %c6 <@mesh, [{"c", "a"}, {"b"}, {"d"}]> : tensor<16x16x16xf32>
  %t7 = math.tanh %c7 : tensor<16x16x16xf32>
  %c8 = fsdp.constraint %t7 <@mesh, [{"a", "d"}, {}, {}]> : tensor<16x16x16xf32>
  %c9 = fsdp.constraint %c8 <@mesh, [{"a"}, {"b"}, {"c"}]> : tensor<16x16x16xf32>
  %t9 = math.tanh %c9 : tensor<16x16x16xf32>
  %c10 = fsdp.constraint %t9 <@mesh, [{"a", "b"}, {"d"}, {"c"}]> : tensor<16x16x16xf32>
  %c11 = fsdp.constraint %c10 <@mesh, [{"c", "b"}, {}, {"a"}]> : tensor<16x16x16xf32>
  %t11 = math.tanh %c11 : tensor<16x16x16xf32>
  %p = arith.mulf %t11, %r : tensor<16x16x16xf32>
  %sum = nn.reduce sum "a b c ->" %p : tensor<16x16x16xf32> -> tensor<f64>
  %weight = arith.constant dense<4096.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
