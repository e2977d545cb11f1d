// What is computed from parameters alone is computed by each stage that uses it, so that a stage that takes a vector of another unit,
// broadcast, neither receives the broadcast nor computes in another stage what depends on it.
// RUN: fsdp-opt %s --fsdp-assign-stages=stages=2,1 --fsdp-differentiate | FileCheck %s
// CHECK: fsdp.param @s : tensor<4xf32> unit "shared"
// CHECK-LABEL: fsdp.step @train
// CHECK: %[[S0:.*]] = fsdp.read @s :
// CHECK: nn.repeat "o -> b o" %[[S0]] {fsdp.structure = #fsdp.structure<"shared">}
// CHECK: %[[B:.*]] = nn.einsum {{.*}}#fsdp.structure<"b" stage 1>
// CHECK: %[[S1:.*]] = fsdp.read @s {fsdp.structure = #fsdp.structure<stage 1>}
// CHECK: %[[R1:.*]] = nn.repeat "o -> b o" %[[S1]] {fsdp.structure = #fsdp.structure<"shared" stage 1>}
// CHECK: arith.mulf %[[B]], %[[R1]] {fsdp.structure = #fsdp.structure<"b" stage 1>}
// Backward: each stage reads the vector and reduces its term of the gradient.
// CHECK: nn.repeat "o -> b o" {{.*}}#fsdp.structure<"shared" backward stage 1>
// CHECK: nn.reduce sum "b o -> o" {{.*}}#fsdp.structure<"shared" backward stage 1>
// CHECK: nn.reduce sum "b o -> o" {{.*}}#fsdp.structure<"shared" backward>

// A stage that has nothing else computes it for the others.
// RUN: fsdp-opt %s --fsdp-assign-stages=stages=1,2 | FileCheck %s --check-prefix=ALONE
// ALONE: fsdp.param @s : tensor<4xf32> unit "shared" init
// ALONE: nn.repeat "o -> b o" %{{.*}} {fsdp.structure = #fsdp.structure<"shared">}
// ALONE-NOT: nn.repeat
// ALONE: nn.einsum {{.*}}#fsdp.structure<"a" stage 1>
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.param @s : tensor<4xf32> unit "shared" init <normal, 2.0e-02>
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %s = fsdp.read @s : tensor<4xf32>
  %a = fsdp.read @a : tensor<4x4xf32>
  %b = fsdp.read @b : tensor<4x4xf32>
  %r = nn.repeat "o -> b o" %s {fsdp.structure = #fsdp.structure<"shared">} : tensor<4xf32> -> tensor<8x4xf32>
  %0 = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = arith.mulf %0, %r {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32>
  %2 = nn.einsum "bi,io->bo" %1, %b {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = arith.mulf %2, %r {fsdp.structure = #fsdp.structure<"b">} : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %3 {fsdp.structure = #fsdp.structure<"b">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
