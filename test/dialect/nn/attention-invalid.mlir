// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1_q(%q: tensor<4x16x8xf32>, %k: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'q' has type 'tensor<4x16x8xf32>', expected rank 4: batch, heads, queries and width}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<4x16x8xf32>, tensor<2x4x16x8xf32> -> tensor<4x16xf32>
  return
}

// -----

func.func @attention_c1_k(%q: tensor<2x4x16x8xf32>, %k: tensor<4x16x8xf32>) {
  // expected-error @below {{'k' has type 'tensor<4x16x8xf32>', expected rank 4: batch, groups, keys and width}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<2x4x16x8xf32>, tensor<4x16x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c1_batch(%q: tensor<2x4x16x8xf32>, %k: tensor<3x4x16x8xf32>) {
  // expected-error @below {{'k' has type 'tensor<3x4x16x8xf32>', expected batch 2 and width 8 as 'q' has}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<2x4x16x8xf32>, tensor<3x4x16x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<2x4x16x8xf32>, %k: tensor<2x3x16x8xf32>) {
  // expected-error @below {{has 4 heads and 3 groups, expected the groups to divide the heads}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x3x16x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c2_none(%q: tensor<2x4x16x8xf32>, %k: tensor<2x0x16x8xf32>) {
  // expected-error @below {{has 4 heads and 0 groups}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x0x16x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c3(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'log_sum_exp' has type 'tensor<2x4xf32>', expected the shape of the rows of 'tensor<2x4x16x8xf32>'}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @attention_c4_causal(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x15x8xf32>) {
  // expected-error @below {{has 15 keys for 16 queries, expected at least 16 so that every query sees one}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 causal : tensor<2x4x16x8xf32>, tensor<2x4x15x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c4_none(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x0x8xf32>) {
  // expected-error @below {{has 0 keys for 16 queries, expected at least 1 so that every query sees one}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x4x0x8xf32> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_c5(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'log_sum_exp' has type 'tensor<2x4x16xf64>', expected element type 'f32' as sums of 'f32' have}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x16xf64>
  return
}

// -----

func.func @attention_c5_operands(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x16x8xf64>) {
  // expected-error @below {{has an operand or result of type 'tensor<2x4x16x8xf64>', expected element type 'f32' as 'q' has}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf64> -> tensor<2x4x16xf32>
  return
}

// -----

func.func @attention_grad_c2(%q: tensor<2x4x16x8xf32>, %k: tensor<2x3x16x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @below {{has 4 heads and 3 groups, expected the groups to divide the heads}}
  %0:3 = nn.attention_grad %q, %k, %k, %q, %l, %q scale 0.125 : tensor<2x4x16x8xf32>, tensor<2x3x16x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

func.func @rope_c1_rank(%x: tensor<8xf32>) {
  // expected-error @below {{'x' has type 'tensor<8xf32>', expected positions and a width}}
  %0 = nn.rope %x theta 1.0e+04 : tensor<8xf32>
  return
}

// -----

func.func @rope_c1_odd(%x: tensor<8x7xf32>) {
  // expected-error @below {{has width 7, expected an even number to turn pairs of}}
  %0 = nn.rope %x theta 1.0e+04 : tensor<8x7xf32>
  return
}

// -----

func.func @rope_c2(%x: tensor<8x6xf32>) {
  // expected-error @below {{has theta 0.000000e+00, expected a positive number}}
  %0 = nn.rope %x theta 0.0 : tensor<8x6xf32>
  return
}
