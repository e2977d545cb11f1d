// Draws go by the index in the whole tensor: where this rank's part begins, and how far apart its rows are.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cpp | FileCheck %s

// CHECK: dropout(c, kCompute, "dropout",
// CHECK-NEXT: DropoutMask<1>{/*rate=*/0.25, /*name=*/hashName("a"),
// CHECK-NEXT: /*first=*/std::int64_t{24} * (c.coordinate(kAxisFsdp)), /*extents=*/{{[{][{]}}24, 1}}},
// CHECK-NEXT: persistent::step_state, arena::input_x, arena::dropout);
// CHECK: dropout(c, kCompute, "dropout 2",
// CHECK-NEXT: DropoutMask<2>{/*rate=*/0.5, /*name=*/hashName("b \"2\""),
// CHECK-NEXT: /*first=*/std::int64_t{4} * (c.coordinate(kAxisFsdp)), /*extents=*/{{[{][{]}}4, 10}, {4, 1}}},
// CHECK-NEXT: persistent::step_state, arena::einsum, arena::dropout_2);
fsdp.mesh @mesh <["fsdp"=3]>
fsdp.param @w : tensor<6x4xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %w = fsdp.read @w : tensor<6x4xf32>
  %d = fsdp.dropout %x rate 0.25 name "a" : tensor<10x6xf32>
  %z = nn.einsum "bi,io->ob" %d, %w : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<4x10xf32>
  %e = fsdp.dropout %z rate 0.5 name "b \"2\"" : tensor<4x10xf32>
  %q = arith.mulf %e, %e : tensor<4x10xf32>
  %sum = nn.reduce sum "o b ->" %q : tensor<4x10xf32> -> tensor<f64>
  %weight = arith.constant dense<10.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
