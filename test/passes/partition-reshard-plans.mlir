// A value that an op takes in another sharding is moved by the cheapest collectives: from the sharding in which it was made, or
// from one in which it was taken before. Numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>&1 | %{plain} | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: sed 's/\["a"=2, "b"=2, "fsdp"=2\]/["a"=3, "b"=2, "fsdp"=1]/' %s > %t.uneven.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.uneven.mlir %t.uneven

// CHECK: remark: 'fsdp.constraint' changes its sharding: all_to_all over ["a"] of 384 bytes
// CHECK: remark: 'fsdp.constraint' changes its sharding: collective_permute over ["a", "b"] of 192 bytes
// CHECK-LABEL: fsdp.segment @train
// From one dimension to another; ranks that have more than they are to have cut it.
// CHECK: %[[X:.*]] = fsdp.all_slice %{{.*}} dim 1 over ["a"] : tensor<2x8x12xf32> -> tensor<2x4x12xf32>
// CHECK: %[[Y:.*]] = fsdp.all_to_all %[[X]] split 2 concat 1 over ["a"] : tensor<2x4x12xf32> -> tensor<2x8x6xf32>
// CHECK: %[[Z:.*]] = fsdp.all_slice %[[Y]] dim 2 over ["b"] : tensor<2x8x6xf32> -> tensor<2x8x3xf32>
// CHECK: %[[T:.*]] = math.tanh %[[Z]]
// Another order of axes: every rank sends what it has to one other.
// CHECK: fsdp.collective_permute %[[T]] from [0, 2, 1, 3] over ["a", "b"]
// The parameter follows, so no rank holds all of it.
// CHECK-NOT: fsdp.all_gather
// CHECK: fsdp.segment @evaluate
fsdp.mesh @mesh <["a"=2, "b"=2, "fsdp"=2]>
fsdp.param @w : tensor<12xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x8x12xf32> loc("x")
  %w = fsdp.read @w : tensor<12xf32>
  %r = nn.repeat "c -> a b c" %w : tensor<12xf32> -> tensor<4x8x12xf32>
  %x1 = fsdp.constraint %x <@mesh, [{"fsdp"}, {"a"}, {}]> : tensor<4x8x12xf32>
  %x2 = fsdp.constraint %x1 <@mesh, [{"fsdp"}, {}, {"a"}]> : tensor<4x8x12xf32>
  %t = math.tanh %x2 : tensor<4x8x12xf32>
  %t1 = fsdp.constraint %t <@mesh, [{"fsdp"}, {}, {"a", "b"}]> : tensor<4x8x12xf32>
  %t2 = fsdp.constraint %t1 <@mesh, [{"fsdp"}, {}, {"b", "a"}]> : tensor<4x8x12xf32>
  %p = arith.mulf %t2, %r : tensor<4x8x12xf32>
  %sum = nn.reduce sum "a b c ->" %p : tensor<4x8x12xf32> -> tensor<f64>
  %weight = arith.constant dense<384.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
