// Of a batch of ten samples the first three count: the loss is theirs alone, on one device and on four ranks of which one
// holds none of them and one only padding.
// DEFINE: %{run} = fsdp-run --segment=evaluate --params=%{golden}/linear/10-5-3.init.safetensors --inputs=%{golden}/linear/10-5-3.data.safetensors
// RUN: fsdp-opt %s --fsdp-to-global -o %t.global.mlir
// RUN: fsdp-opt %s --fsdp-to-local -o %t.local.mlir
// RUN: fsdp-opt %s --fsdp-to-scheduled -o %t.scheduled.mlir
// RUN: %{run} --samples=3 %t.global.mlir | FileCheck %s
// RUN: %{run} --samples=3 %t.local.mlir | FileCheck %s
// RUN: %{run} --samples=3 %t.scheduled.mlir | FileCheck %s
// CHECK: step 1 loss 2.76595542164

// Without it all count; more than the batch has, or a segment that does not look at the number, is a mistake.
// RUN: %{run} %t.scheduled.mlir | FileCheck %s --check-prefix=ALL
// RUN: %{run} --samples=10 %t.scheduled.mlir | FileCheck %s --check-prefix=ALL
// RUN: not %{run} --samples=11 %t.scheduled.mlir 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: --samples: got '11', expected at most 10, the batch of 'evaluate'
// RUN: not %{run} --samples=3 --segment=train %t.scheduled.mlir 2>&1 | FileCheck %s --check-prefix=TRAIN
// TRAIN: --samples: got '3', but 'train' uses full batches; leave it out
// ALL: step 1 loss 8.6590106119
fsdp.mesh @mesh <["fsdp"=4]>
fsdp.param @kernel : tensor<5x3xf32> unit "m" init <normal, 0.02>
fsdp.param @bias : tensor<3xf32> unit "m" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x5xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x3xf32>
  %w = fsdp.read @kernel : tensor<5x3xf32>
  %b = fsdp.read @bias : tensor<3xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x5xf32>, tensor<5x3xf32>) -> tensor<10x3xf32>
  %r = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<10x3xf32>
  %p = arith.addf %z, %r : tensor<10x3xf32>
  %e = arith.subf %p, %y : tensor<10x3xf32>
  %q = arith.mulf %e, %e : tensor<10x3xf32>
  %sum = nn.reduce sum "b o ->" %q : tensor<10x3xf32> -> tensor<f64>
  %weight = arith.constant dense<30.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
