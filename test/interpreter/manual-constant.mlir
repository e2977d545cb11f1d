// A region whose result depends on no input: each rank returns its part.
// RUN: fsdp-run %s --segment=train | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-global | fsdp-run - --segment=train | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local | fsdp-run - --segment=train | FileCheck %s
// CHECK: step 1 loss 48{{$|[^0-9.]}}
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @v : tensor<8x4xf32> unit "v" init <constant, 0.5>
fsdp.step @train train optimizer <sgd, lr = 1.0> {
  %pv = fsdp.read @v : tensor<8x4xf32>
  %y = fsdp.manual(%pv) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%v: tensor<4x4xf32>):
    %c = arith.constant dense<1.0> : tensor<4x4xf32>
    fsdp.yield %c : tensor<4x4xf32>
  }
  %s1 = nn.reduce sum "a b ->" %y : tensor<8x4xf32> -> tensor<f64>
  %s2 = nn.reduce sum "a b ->" %pv : tensor<8x4xf32> -> tensor<f64>
  %sum = arith.addf %s1, %s2 : tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
