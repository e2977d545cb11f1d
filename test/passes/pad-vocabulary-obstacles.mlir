// What could see the padding keeps the size: a remark says which op.
// RUN: fsdp-opt %s --fsdp-to-global -o /dev/null 2>&1 | FileCheck %s

// CHECK-DAG: remark: dimension 0 of 'merged' is not padded from 1001 to 1024: 'nn.rearrange' merges it with another dimension
// CHECK-DAG: remark: dimension 0 of 'dropped' is not padded from 1001 to 1024: 'fsdp.dropout' draws by the position along it
// Sizes in attributes are those of merged dimensions; others may be padded.
// CHECK-NOT: dimension 0 of 'cut'
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @merged : tensor<1001x8xf32> unit "a" init <normal, 1.0>
fsdp.param @dropped : tensor<1001x8xf32> unit "b" init <normal, 1.0>
fsdp.param @cut : tensor<1001x8xf32> unit "c" init <normal, 1.0>
fsdp.step @evaluate evaluate {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<4xi32>
  %merged = fsdp.read @merged : tensor<1001x8xf32>
  %a = nn.embedding %merged, %ids : tensor<1001x8xf32>, tensor<4xi32> -> tensor<4x8xf32>
  %flat = nn.rearrange "v d -> (v d)" %merged : tensor<1001x8xf32> -> tensor<8008xf32>
  %s = nn.reduce sum "v ->" %flat : tensor<8008xf32> -> tensor<f64>
  %dropped = fsdp.read @dropped : tensor<1001x8xf32>
  %d = fsdp.dropout %dropped rate 0.25 name "a" : tensor<1001x8xf32>
  %b = nn.embedding %d, %ids : tensor<1001x8xf32>, tensor<4xi32> -> tensor<4x8xf32>
  %cut = fsdp.read @cut : tensor<1001x8xf32>
  %heads = nn.rearrange "v (h d) -> h v d" %cut {h = 2} : tensor<1001x8xf32> -> tensor<2x1001x4xf32>
  %rows = nn.reduce sum "h v d -> v d" %heads : tensor<2x1001x4xf32> -> tensor<1001x4xf32>
  %c = nn.embedding %rows, %ids : tensor<1001x4xf32>, tensor<4xi32> -> tensor<4x4xf32>
  %r = nn.reduce sum "b d ->" %c : tensor<4x4xf32> -> tensor<f64>
  %ab = arith.addf %a, %b : tensor<4x8xf32>
  %t = nn.reduce sum "b d ->" %ab : tensor<4x8xf32> -> tensor<f64>
  %st = arith.addf %s, %t : tensor<f64>
  %sum = arith.addf %st, %r : tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %count
}
