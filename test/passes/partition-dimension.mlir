// Parameters split along a dimension, none of which divides; also more ranks than rows.
// RUN: fsdp-opt %s "--fsdp-to-global=shard=w:0;v:1;b:0" --fsdp-partition | %{plain} | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.four "shard=w:0;v:1;b:0"
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.other "shard=w:1;v:0"
// RUN: sed s/fsdp\"=4/fsdp\"=7/ %s > %t.7.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.7.mlir %t.seven "shard=w:0;v:1;b:0"

// CHECK: fsdp.storage @w.shard : tensor<2x5xf32> dimension dim 0 over ["fsdp"] states ["exp_avg", "exp_avg_sq"] members [#fsdp.member<@w at 0>]
// CHECK: fsdp.storage @v.shard : tensor<5x1xf32> dimension dim 1 over ["fsdp"]
// CHECK: fsdp.storage @b.shard : tensor<1xf32> dimension dim 0 over ["fsdp"]
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[W:.*]] = fsdp.all_gather %{{.*}} dim 0 over ["fsdp"] : tensor<2x5xf32> -> tensor<6x5xf32>
// CHECK-NEXT: nn.einsum "bi,io->bo" %{{.*}}, %[[W]]
// CHECK: fsdp.all_gather %{{.*}} dim 1 over ["fsdp"] : tensor<5x1xf32> -> tensor<5x3xf32>
// CHECK: fsdp.all_gather %{{.*}} dim 0 over ["fsdp"] : tensor<1xf32> -> tensor<3xf32>
// CHECK: fsdp.reduce_scatter %{{.*}} dim 0 over ["fsdp"] : tensor<3xf32> -> tensor<1xf32>
// CHECK: fsdp.reduce_scatter %{{.*}} dim 1 over ["fsdp"] : tensor<5x3xf32> -> tensor<5x1xf32>
// CHECK: fsdp.reduce_scatter %{{.*}} dim 0 over ["fsdp"] : tensor<6x5xf32> -> tensor<2x5xf32>
// CHECK: fsdp.square_sum
// CHECK: fsdp.optimizer_step {{.*}} @w.shard
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @w : tensor<6x5xf32> unit "a" init <normal, 0.5>
fsdp.param @v : tensor<5x3xf32> unit "b" init <normal, 0.5>
fsdp.param @b : tensor<3xf32> unit "b" init <constant, 0.1>
fsdp.step @train train optimizer <adamw, lr = 0.01, weight_decay = 0.1, clip = 0.5> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
  %label = fsdp.input "label" sample_dim 0 : tensor<8xi32>
  %w = fsdp.read @w : tensor<6x5xf32>
  %v = fsdp.read @v : tensor<5x3xf32>
  %b = fsdp.read @b : tensor<3xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<8x6xf32>, tensor<6x5xf32>) -> tensor<8x5xf32>
  %h = math.tanh %z : tensor<8x5xf32>
  %l = nn.einsum "bi,io->bo" %h, %v : (tensor<8x5xf32>, tensor<5x3xf32>) -> tensor<8x3xf32>
  %r = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<8x3xf32>
  %y = arith.addf %l, %r : tensor<8x3xf32>
  %loss, %lse = nn.cross_entropy %y, %label : tensor<8x3xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
  %sum = nn.reduce sum "b ->" %loss : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
