// RUN: fsdp-opt %s --fsdp-differentiate --split-input-file | %{plain} | FileCheck %s

// The slices of %h fill it: its gradient is one piece after the other, in the order of their places
// and not of their uses.
// CHECK-LABEL: fsdp.step @filled
// CHECK: nn.slice
// CHECK: nn.slice
// CHECK-NOT: nn.pad
// CHECK: %[[H:.*]] = nn.concat %[[FIRST:.*]], %[[SECOND:.*]] dim 1 : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<8x6xf32>
// CHECK-NOT: nn.pad
// CHECK: nn.einsum "bi,bh->ih" %{{.*}}, %[[H]]
fsdp.param @w : tensor<4x6xf32> unit "one" init <constant, 0.0>
fsdp.step @filled train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x6xf32>
  %h = nn.einsum "bi,ih->bh" %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %last = nn.slice %h dim 1 start 2 : tensor<8x6xf32> -> tensor<8x4xf32>
  %first = nn.slice %h dim 1 start 0 : tensor<8x6xf32> -> tensor<8x2xf32>
  %a = nn.reduce sum "b h -> b" %last : tensor<8x4xf32> -> tensor<8xf32>
  %b = nn.reduce sum "b h -> b" %first : tensor<8x2xf32> -> tensor<8xf32>
  %c = arith.mulf %a, %b : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %c : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Column 2 is in no slice, and gets a zero.
// CHECK-LABEL: fsdp.step @gap
// CHECK-NOT: nn.concat
// CHECK-COUNT-2: nn.pad
// CHECK: arith.addf
// CHECK-NOT: nn.concat
// CHECK: fsdp.output "loss"
fsdp.param @w : tensor<4x6xf32> unit "one" init <constant, 0.0>
fsdp.step @gap train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x6xf32>
  %h = nn.einsum "bi,ih->bh" %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %last = nn.slice %h dim 1 start 3 : tensor<8x6xf32> -> tensor<8x3xf32>
  %first = nn.slice %h dim 1 start 0 : tensor<8x6xf32> -> tensor<8x2xf32>
  %a = nn.reduce sum "b h -> b" %last : tensor<8x3xf32> -> tensor<8xf32>
  %b = nn.reduce sum "b h -> b" %first : tensor<8x2xf32> -> tensor<8xf32>
  %c = arith.mulf %a, %b : tensor<8xf32>
  %sum = nn.reduce sum "b ->" %c : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
