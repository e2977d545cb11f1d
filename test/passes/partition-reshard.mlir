// A value that must change its sharding is gathered or sliced, and a remark says so, with the bytes. Rows
// made of slices are padded with zeros, of which compute may make anything (here 0/0): both operands of a
// contraction over them are masked.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>&1 | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: sed s/fsdp\"=4/fsdp\"=1/ %s > %t.1.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.1.mlir %t.one

// CHECK: remark: 'nn.slice' takes '{{.*}}' in another sharding: all_gather over ["fsdp"] of 120 bytes
// CHECK: remark: 'fsdp.constraint' changes its sharding: all_gather over ["fsdp"] of 120 bytes
// A slice moves nothing between ranks.
// CHECK-NOT: remark
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[WHOLE:.*]] = fsdp.all_gather %{{.*}} dim 1 over ["fsdp"] : tensor<3x3xf32> -> tensor<3x10xf32>
// CHECK-NEXT: nn.slice %[[WHOLE]] dim 1 start 3 : tensor<3x10xf32> -> tensor<3x4xf32>
// CHECK: fsdp.all_slice %{{.*}} dim 0 over ["fsdp"] : tensor<10x3xf32> -> tensor<3x3xf32>
// CHECK: %[[NAN:.*]] = arith.divf
// CHECK-COUNT-2: fsdp.mask_padding {{.*}} dim 0 of 10
// CHECK: nn.einsum "bo,bp->op"
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<6x3xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 1 : tensor<6x10xf32>
  %w = fsdp.read @w : tensor<6x3xf32>
  %z = nn.einsum "ib,io->ob" %x, %w : (tensor<6x10xf32>, tensor<6x3xf32>) -> tensor<3x10xf32>
  // Some samples of the batch: needs all of it.
  %a = nn.slice %z dim 1 start 3 : tensor<3x10xf32> -> tensor<3x4xf32>
  %some = nn.reduce sum "o b ->" %a : tensor<3x4xf32> -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  fsdp.metric "some" %some over %one
  // Whole, and then split again.
  %t = nn.rearrange "o b -> b o" %z : tensor<3x10xf32> -> tensor<10x3xf32>
  %g = fsdp.constraint %t <@mesh, [{}, {}]> : tensor<10x3xf32>
  %c = fsdp.constraint %g <@mesh, [{"fsdp"}, {}]> : tensor<10x3xf32>
  %d = arith.divf %c, %c : tensor<10x3xf32>
  %gram = nn.einsum "bo,bp->op" %c, %d : (tensor<10x3xf32>, tensor<10x3xf32>) -> tensor<3x3xf32>
  %sum = nn.reduce sum "o p ->" %gram : tensor<3x3xf32> -> tensor<f64>
  fsdp.loss %sum over %one
}
