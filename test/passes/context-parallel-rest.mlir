// What attention and learned positions do not cover, where sequences are split: a cumulative sum exchanges totals, a slice along the sequence gathers its operand, with a warning,
// and a table of positions that is used otherwise than by being added to samples has a gradient that is reduced whole. The numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-to-local -o /dev/null 2>&1 | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t strategy=ddp accumulate=2
// CHECK: warning: 'nn.slice' needs all of 'nn.einsum' of a rank's samples, which gathers 80 bytes over 'context'
// CHECK: remark: the gradients of unit 'u' are not all partial sums over its axes: each is reduced whole, then split
fsdp.mesh @mesh <["context"=2, "fsdp"=2]>
fsdp.param @table : tensor<4x3xf32> unit "u" init <normal, 0.5>
fsdp.param @w : tensor<3x5xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<4x4x3xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"context"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<4x4x3xf32>
  %t = fsdp.read @table : tensor<4x3xf32>
  %r = nn.repeat "t d -> b t d" %t : tensor<4x3xf32> -> tensor<4x4x3xf32>
  %m = arith.mulf %x, %r : tensor<4x4x3xf32>
  %t2 = fsdp.read @table : tensor<4x3xf32>
  %r2 = nn.rearrange "t d -> d t" %t2 : tensor<4x3xf32> -> tensor<3x4xf32>
  %r3 = nn.repeat "d t -> b d t" %r2 : tensor<3x4xf32> -> tensor<4x3x4xf32>
  %r4 = nn.rearrange "b d t -> b t d" %r3 : tensor<4x3x4xf32> -> tensor<4x4x3xf32>
  %m2 = arith.addf %m, %r4 : tensor<4x4x3xf32>
  %c = nn.scan_sum "b t d" along "t" %m2 : tensor<4x4x3xf32>
  %w = fsdp.read @w : tensor<3x5xf32>
  %h = nn.einsum "btd,de->bte" %c, %w : (tensor<4x4x3xf32>, tensor<3x5xf32>) -> tensor<4x4x5xf32>
  %s = nn.slice %h dim 1 start 1 : tensor<4x4x5xf32> -> tensor<4x3x5xf32>
  %sm = nn.softmax %s : tensor<4x3x5xf32>
  %q = arith.mulf %sm, %s : tensor<4x3x5xf32>
  %sum = nn.reduce sum "b t o ->" %q : tensor<4x3x5xf32> -> tensor<f64>
  %one = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %one
}
