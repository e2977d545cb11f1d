// Ops on the tokens of a text: sizes as the runtime has them, on both targets.
// RUN: fsdp-opt %s --fsdp-to-scheduled -o %t
// RUN: fsdp-translate --fsdp-to-cpp %t | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t | FileCheck %s

// CHECK: positions_since(c, kCompute, "positions_since",
// CHECK-NEXT: SequenceShape{/*rows=*/3, /*positions=*/4, /*documents=*/true, /*length=*/1, /*sequence=*/{7}},
// CHECK-NEXT: arena::input_ids, arena::positions_since);
// CHECK: positions_since(c, kCompute, "positions_since 2",
// CHECK-NEXT: SequenceShape{/*rows=*/3, /*positions=*/4, /*documents=*/false, /*length=*/2,
// CHECK-NEXT: /*sequence=*/{5, 9223372036854775807}}, arena::input_ids, arena::positions_since_2);
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @table : tensor<5x8xf32> unit "all" init <normal, 0.02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<6x4xi32>
  %t = fsdp.read @table : tensor<5x8xf32>
  %at = nn.positions_since [7] documents in %ids : tensor<6x4xi32> -> tensor<6x4xi32>
  %x = nn.embedding %t, %at : tensor<5x8xf32>, tensor<6x4xi32> -> tensor<6x4x8xf32>
  %since = nn.positions_since [5, 9223372036854775807] in %ids : tensor<6x4xi32> -> tensor<6x4xi32>
  %y = nn.embedding %t, %since : tensor<5x8xf32>, tensor<6x4xi32> -> tensor<6x4x8xf32>
  %xy = arith.mulf %x, %y : tensor<6x4x8xf32>
  %sum = nn.reduce sum "b t d ->" %xy : tensor<6x4x8xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
