// Heads of one group that the ranks do not divide: what stands in the head that one rank has too many adds nothing to the gradients of keys and
// values. Its query is zero, as its weight is, and its cotangent is not, as that of a sum over heads: it is the cotangent that is masked.
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: fsdp-opt %s --fsdp-to-local | FileCheck %s
// CHECK: fsdp.mask_padding %{{.*}} dim 1 of 3 over ["tensor"] fill 0.000000e+00 {fsdp.structure = #fsdp.structure<backward>} : tensor<2x2x2xf32>
// CHECK: %[[COTANGENT:.*]] = nn.fused
// CHECK: %[[MASKED:.*]] = fsdp.mask_padding %{{.*}} dim 2 of 3 over ["tensor"] fill 0.000000e+00 : tensor<2x2x2x4xf32>
// CHECK: nn.yield %[[MASKED]]
// CHECK: nn.attention_grad {{.*}}%[[COTANGENT]] scale
fsdp.mesh @mesh <["tensor"=2]>
fsdp.param @q : tensor<3x4xf32> unit "all" init <uniform, 0.6> split [["tensor"], []]
fsdp.param @k : tensor<4xf32> unit "all" init <uniform, 0.6>
fsdp.param @v : tensor<4xf32> unit "all" init <uniform, 0.6>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<2x2x4xf32>
  %q = fsdp.read @q : tensor<3x4xf32>
  %k = fsdp.read @k : tensor<4xf32>
  %v = fsdp.read @v : tensor<4xf32>
  %xs = nn.repeat "b t d -> t b h d" %x : tensor<2x2x4xf32> -> tensor<2x2x3x4xf32>
  %x1 = nn.repeat "b t d -> t b g d" %x : tensor<2x2x4xf32> -> tensor<2x2x1x4xf32>
  %qs = nn.repeat "h d -> t b h d" %q : tensor<3x4xf32> -> tensor<2x2x3x4xf32>
  %ks = nn.repeat "d -> t b g d" %k : tensor<4xf32> -> tensor<2x2x1x4xf32>
  %vs = nn.repeat "d -> t b g d" %v : tensor<4xf32> -> tensor<2x2x1x4xf32>
  %queries = arith.mulf %xs, %qs : tensor<2x2x3x4xf32>
  %keys = arith.mulf %x1, %ks : tensor<2x2x1x4xf32>
  %values = arith.mulf %x1, %vs : tensor<2x2x1x4xf32>
  %out, %log_sum_exp = nn.attention "t b h d" %queries, %keys, %values scale 0.5 : (tensor<2x2x3x4xf32>, tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x3x2xf32>)
  %heads = nn.reduce sum "t b h d -> t b d" %out : tensor<2x2x3x4xf32> -> tensor<2x2x4xf32>
  %y = math.tanh %heads : tensor<2x2x4xf32>
  %sum = nn.reduce sum "t b d ->" %y : tensor<2x2x4xf32> -> tensor<f64>
  %count = arith.constant dense<16.0> : tensor<f64>
  fsdp.loss %sum over %count
}
