// The last rank computes the loss between kernels of the backward of the same microbatch, since both use the difference: that interrupts
// nothing, and the order of parts is known.
// RUN: fsdpc %s --mesh=pipeline=2 --accumulate=4 --report=%t.json 2>&1 | FileCheck %s
// RUN: %{python} -c "import json; print([role['idle'] for role in json.load(open('%t.json'))['roles']])" | FileCheck %s --check-prefix=JSON

// CHECK: pipeline0 {{.*}} 2 20.0 %
// CHECK-NEXT: pipeline1 {{.*}} 1 20.0 %
// CHECK-NOT: ?:
// JSON: [0.2, 0.2]
module @spec {
  fsdp.param @a.w1 : tensor<6x6xf32> unit "a" init <normal, 4.000000e-01>
  fsdp.param @b.w : tensor<6x6xf32> unit "b" init <normal, 4.000000e-01>
  fsdp.step @train train optimizer <sgd, lr = 2.000000e-02> {
    %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
    %y = fsdp.input "y" sample_dim 0 : tensor<8x6xf32>
    %a.w1 = fsdp.read @a.w1 {fsdp.structure = #fsdp.structure<"a">} : tensor<6x6xf32>
    %a.einsum = nn.einsum "bi,io->bo" %x, %a.w1 {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %a.tanh = math.tanh %a.einsum {fsdp.structure = #fsdp.structure<"a">} : tensor<8x6xf32>
    %b.w = fsdp.read @b.w {fsdp.structure = #fsdp.structure<"b">} : tensor<6x6xf32>
    %b.einsum = nn.einsum "bi,io->bo" %a.tanh, %b.w {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %b.subtract = arith.subf %b.einsum, %y {fsdp.structure = #fsdp.structure<"b">} : tensor<8x6xf32>
    %b.multiply = arith.mulf %b.subtract, %b.subtract {fsdp.structure = #fsdp.structure<"b">} : tensor<8x6xf32>
    %b.mean = nn.reduce sum "d0 d1 ->" %b.multiply {fsdp.structure = #fsdp.structure<"b">} : tensor<8x6xf32> -> tensor<f64>
    %constant = arith.constant dense<4.800000e+01> : tensor<f64>
    fsdp.loss %b.mean over %constant
  }
}
