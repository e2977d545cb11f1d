// The parameters of the middle stage are frozen, so that its backward computes cotangents alone: of a microbatch it takes two units of time
// where the others take three. `z` is of no stage, and every rank keeps it.
// RUN: fsdpc %s --mesh=pipeline=3 --accumulate=6 --report=%t.json 2>&1 | FileCheck %s
// RUN: fsdpc %s --mesh=pipeline=3 --accumulate=6 --pipeline-schedule=zb --report 2>&1 | FileCheck %s --check-prefix=ZB
// RUN: %{python} -c "import json; print(json.load(open('%t.json'))['tied_copies'])" | FileCheck %s --check-prefix=JSON

// 5, 11 and 5 of 23 units of time; with zb 2, 8 and 2 of 20.
// CHECK: pipeline0 {{.*}} 21.7 %
// CHECK-NEXT: pipeline1 {{.*}} 47.8 %
// CHECK-NEXT: pipeline2 {{.*}} 21.7 %
// ZB: pipeline0 {{.*}} 10.0 %
// ZB-NEXT: pipeline1 {{.*}} 40.0 %
// ZB-NEXT: pipeline2 {{.*}} 10.0 %
// CHECK-NOT: ?
// CHECK-NOT: tied:
// CHECK: unused: z.w has a copy on each of pipeline0, pipeline1, pipeline2, 144 bytes of parameters each,
// CHECK-NOT: tied:
// JSON: [{'names': ['z.w'], 'optimizer': 0, 'parameters': 144, 'roles': ['pipeline0', 'pipeline1', 'pipeline2'], 'unit': 'z', 'used': False}]
module @spec {
  fsdp.param @a.w : tensor<6x6xf32> unit "a" init <normal, 4.000000e-01>
  fsdp.param @b.w : tensor<6x6xf32> unit "b" init <normal, 4.000000e-01> frozen
  fsdp.param @c.w : tensor<6x6xf32> unit "c" init <normal, 4.000000e-01>
  fsdp.param @z.w : tensor<6x6xf32> unit "z" init <normal, 4.000000e-01> frozen
  fsdp.step @train train optimizer <sgd, lr = 2.000000e-02> {
    %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
    %y = fsdp.input "y" sample_dim 0 : tensor<8x6xf32>
    %a.w = fsdp.read @a.w {fsdp.structure = #fsdp.structure<"a">} : tensor<6x6xf32>
    %a.einsum = nn.einsum "bi,io->bo" %x, %a.w {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %a.tanh = math.tanh %a.einsum {fsdp.structure = #fsdp.structure<"a">} : tensor<8x6xf32>
    %b.w = fsdp.read @b.w {fsdp.structure = #fsdp.structure<"b">} : tensor<6x6xf32>
    %b.einsum = nn.einsum "bi,io->bo" %a.tanh, %b.w {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %b.tanh = math.tanh %b.einsum {fsdp.structure = #fsdp.structure<"b">} : tensor<8x6xf32>
    %c.w = fsdp.read @c.w {fsdp.structure = #fsdp.structure<"c">} : tensor<6x6xf32>
    %c.einsum = nn.einsum "bi,io->bo" %b.tanh, %c.w {fsdp.structure = #fsdp.structure<"c">} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %c.tanh = math.tanh %c.einsum {fsdp.structure = #fsdp.structure<"c">} : tensor<8x6xf32>
    %c.subtract = arith.subf %c.tanh, %y {fsdp.structure = #fsdp.structure<"c">} : tensor<8x6xf32>
    %c.square = arith.mulf %c.subtract, %c.subtract {fsdp.structure = #fsdp.structure<"c">} : tensor<8x6xf32>
    %c.mean = nn.reduce sum "d0 d1 ->" %c.square {fsdp.structure = #fsdp.structure<"c">} : tensor<8x6xf32> -> tensor<f64>
    %constant = arith.constant dense<4.800000e+01> : tensor<f64>
    fsdp.loss %c.mean over %constant
  }
}
