// What the CUDA target refuses, and the CPU target takes.
// RUN: fsdp-opt %s --fsdp-to-scheduled -o %t
// RUN: not fsdp-translate --fsdp-to-cuda %t 2>&1 | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cpp %t | FileCheck %s --check-prefix=CPU
// RUN: sed s/136/128/g %s | fsdp-opt --fsdp-to-scheduled | fsdp-translate --fsdp-to-cuda | FileCheck %s --check-prefix=NARROW

// CHECK: error: got heads of width 136, expected at most 128 for the attention kernels of --target=cuda; use more heads, which are narrower, or --target=cpu
// CPU: /*width=*/136
// NARROW: /*width=*/128
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @scale : tensor<136xf32> unit "all" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<2x2x4x136xf32>
  %s = fsdp.read @scale : tensor<136xf32>
  %h, %r = nn.rms_norm %x, %s eps 1.0e-06 : tensor<2x2x4x136xf32>, tensor<136xf32> -> tensor<2x2x4xf32>
  %a, %lse = nn.attention %h, %h, %h scale 0.5 causal : (tensor<2x2x4x136xf32>, tensor<2x2x4x136xf32>, tensor<2x2x4x136xf32>) -> (tensor<2x2x4x136xf32>, tensor<2x2x4xf32>)
  %sum = nn.reduce sum "b h t d ->" %a : tensor<2x2x4x136xf32> -> tensor<f64>
  %weight = arith.constant dense<16.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
