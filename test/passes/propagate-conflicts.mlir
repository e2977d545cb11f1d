// Where an op cannot take an operand as that is split, a reshard stands between: once for each sharding that is
// needed, in front of the first op that needs it. Another propagation leaves it as it is.
// RUN: fsdp-opt %s --split-input-file --fsdp-propagate | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-propagate | fsdp-opt --split-input-file --fsdp-propagate | FileCheck %s

// slice needs all samples; the product beside it does not.
// CHECK: %[[X:.*]] = fsdp.input
// CHECK: %[[WHOLE:.*]] = fsdp.reshard %[[X]] <@mesh, [{}, {}]> {{.*}}[{}, {}]
// CHECK-NEXT: nn.slice %[[WHOLE]]
// CHECK-NEXT: nn.slice %[[WHOLE]]
// CHECK-NEXT: arith.mulf %[[X]], %[[X]]
// CHECK-NOT: fsdp.reshard
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 1 : tensor<3x8xf32>
  %a = nn.slice %x dim 1 start 0 : tensor<3x8xf32> -> tensor<3x2xf32>
  %b = nn.slice %x dim 1 start 5 : tensor<3x8xf32> -> tensor<3x2xf32>
  %m = arith.mulf %x, %x : tensor<3x8xf32>
}

// -----

// Two operands that want one axis for different dimensions: in an elementwise op of equal tensors the first keeps
// what it has.
// CHECK: %[[C:.*]] = fsdp.constraint {{.*}} [{"tensor"}, {}]
// CHECK: %[[D:.*]] = fsdp.constraint {{.*}} [{}, {"tensor"}]
// CHECK: %[[MOVED:.*]] = fsdp.reshard %[[D]] <@mesh, [{"tensor"}, {}]>
// CHECK-NEXT: arith.addf %[[C]], %[[MOVED]] {{.*}}[{"tensor"}, {}]
fsdp.mesh @mesh <["tensor"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x8xf32>
  %c = fsdp.constraint %x <@mesh, [{"tensor"}, {}]> : tensor<8x8xf32>
  %d = fsdp.constraint %x <@mesh, [{}, {"tensor"}]> : tensor<8x8xf32>
  %s = arith.addf %c, %d : tensor<8x8xf32>
}

// -----

// An open dimension is extended behind what it has; priorities come one after the other: %d takes 'b' before %c,
// whose turn is later, can.
// CHECK: fsdp.constraint {{.*}}[{"fsdp", "a"}, {}]
// CHECK: fsdp.constraint {{.*}} priorities [1, 0] {{.*}}[{"b"}, {}]
// CHECK: fsdp.constraint {{.*}}[{}, {"b"}]
// CHECK: arith.addf {{.*}}[{}, {"b"}]
fsdp.mesh @mesh <["fsdp"=2, "a"=2, "b"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x8xf32>
  %w = fsdp.constraint %x <@mesh, [{"fsdp", ?}, {}]> : tensor<8x8xf32>
  %v = fsdp.constraint %x <@mesh, [{"fsdp", "a"}, {}]> : tensor<8x8xf32>
  %p = arith.addf %w, %v : tensor<8x8xf32>
  %z = arith.constant dense<1.0> : tensor<8x8xf32>
  %o = arith.constant dense<2.0> : tensor<8x8xf32>
  %c = fsdp.constraint %z <@mesh, [{"b"}, {}]> priorities [1, 0] : tensor<8x8xf32>
  %d = fsdp.constraint %o <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  %s = arith.addf %c, %d : tensor<8x8xf32>
}
