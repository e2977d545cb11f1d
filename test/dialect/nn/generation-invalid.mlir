// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @write_rows_c1_samples(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{writes along dimension 0 of 'tensor<2x4x16x8xf32>', expected a dimension after the first}}
  %0 = nn.write_rows %t, %r, %p dim 0 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @write_rows_c1_rank(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{writes along dimension 4 of 'tensor<2x4x16x8xf32>', expected a dimension after the first}}
  %0 = nn.write_rows %t, %r, %p dim 4 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @write_rows_c1_other(%t: tensor<2x4x16x8xf32>, %r: tensor<2x3x3x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'rows' has type 'tensor<2x3x3x8xf32>', expected the sizes of 'tensor<2x4x16x8xf32>' in all dimensions but 2}}
  %0 = nn.write_rows %t, %r, %p dim 2 : tensor<2x4x16x8xf32>, tensor<2x3x3x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @write_rows_c1_rows_rank(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'rows' has type 'tensor<2x4x3xf32>', expected the sizes of 'tensor<2x4x16x8xf32>' in all dimensions but 2}}
  %0 = nn.write_rows %t, %r, %p dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @write_rows_c1_element(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3x8xbf16>, %p: tensor<2x3xi32>) {
  // expected-error @below {{failed to verify that all of {table, rows, result} have same element type}}
  %0 = nn.write_rows %t, %r, %p dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xbf16>, tensor<2x3xi32>
  return
}

// -----

func.func @write_rows_c2_type(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error @below {{'positions' has type 'tensor<2x3xi64>', expected tensor<2x3xi32>}}
  %0 = nn.write_rows %t, %r, %p dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @write_rows_c2_rows(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3x8xf32>, %p: tensor<2x4xi32>) {
  // expected-error @below {{'positions' has type 'tensor<2x4xi32>', expected tensor<2x3xi32>}}
  %0 = nn.write_rows %t, %r, %p dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4xi32>
  return
}

// -----

func.func @write_rows_c2_samples(%t: tensor<2x4x16x8xf32>, %r: tensor<2x4x3x8xf32>, %p: tensor<3xi32>) {
  // expected-error @below {{'positions' has type 'tensor<3xi32>', expected tensor<2x3xi32>}}
  %0 = nn.write_rows %t, %r, %p dim 2 : tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<3xi32>
  return
}

// -----

func.func @cached_attention_c1_packed(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has order 'b t n h d', expected the letters b, h and t with single spaces between them, then d}}
  %0 = nn.cached_attention "b t n h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c1_twice(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has order 'b t t d', expected the letters b, h and t with single spaces between them, then d}}
  %0 = nn.cached_attention "b t t d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c1_last(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has order 'b t d h', expected the letters b, h and t with single spaces between them, then d}}
  %0 = nn.cached_attention "b t d h" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c2(%q: tensor<3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'q' has type 'tensor<3x12x8xf32>', expected the 4 dimensions 'b t h d'}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_rank(%q: tensor<2x3x12x8xf32>, %k: tensor<4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'k' has type 'tensor<4x16x8xf32>', expected (batch, groups, positions, width) with batch 2, width 8 and element type 'f32'}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_batch(%q: tensor<2x3x12x8xf32>, %k: tensor<3x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'k' has type 'tensor<3x4x16x8xf32>', expected (batch, groups, positions, width) with batch 2, width 8 and element type 'f32'}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<3x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_width(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x6xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'k' has type 'tensor<2x4x16x6xf32>', expected (batch, groups, positions, width) with batch 2, width 8 and element type 'f32'}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x6xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_element(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xbf16>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'k' has type 'tensor<2x4x16x8xbf16>', expected (batch, groups, positions, width) with batch 2, width 8 and element type 'f32'}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xbf16>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_groups(%q: tensor<2x3x12x8xf32>, %k: tensor<2x5x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has 12 heads and 5 groups, expected the groups to divide the heads}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x5x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_none(%q: tensor<2x3x12x8xf32>, %k: tensor<2x0x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has 12 heads and 0 groups, expected the groups to divide the heads}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x0x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c3_order(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x12xi32>) {
  // expected-error @below {{has 3 heads and 4 groups, expected the groups to divide the heads}}
  %0 = nn.cached_attention "b h t d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x12xi32>
  return
}

// -----

func.func @cached_attention_c4_type(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error @below {{'positions' has type 'tensor<2x3xi64>', expected tensor<2x3xi32>}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @cached_attention_c4_queries(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x1xi32>) {
  // expected-error @below {{'positions' has type 'tensor<2x1xi32>', expected tensor<2x3xi32>}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x1xi32>
  return
}

// -----

func.func @cached_attention_c5_keys(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x2x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has 3 queries and 2 keys, expected at most as many queries}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 : tensor<2x3x12x8xf32>, tensor<2x4x2x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c5_window(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has a window of 0, expected a positive number}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 window 0 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c5_softcap(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has softcap -5.000000e+00, expected a positive number}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 softcap -5.0 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cached_attention_c5_infinite(%q: tensor<2x3x12x8xf32>, %k: tensor<2x4x16x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{has softcap INF, expected a positive number}}
  %0 = nn.cached_attention "b t h d" %q, %k, %k, %p scale 0.125 softcap 0x7FF0000000000000 : tensor<2x3x12x8xf32>, tensor<2x4x16x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @rope_c5_samples(%x: tensor<2x3x12x8xf32>, %p: tensor<2x2xi32>) {
  // expected-error @below {{takes 'positions' for dimension 0, expected a dimension after the samples}}
  %0 = nn.rope %x at %p : tensor<2x2xi32> dim 0 theta 1.0e+04 : tensor<2x3x12x8xf32>
  return
}

// -----

func.func @rope_c5_size(%x: tensor<2x3x12x8xf32>, %p: tensor<2x3xi32>) {
  // expected-error @below {{'positions' has type 'tensor<2x3xi32>', expected tensor<2x12xi32>}}
  %0 = nn.rope %x at %p : tensor<2x3xi32> dim 2 theta 1.0e+04 : tensor<2x3x12x8xf32>
  return
}

// -----

func.func @rope_c5_batch(%x: tensor<2x3x12x8xf32>, %p: tensor<1x3xi32>) {
  // expected-error @below {{'positions' has type 'tensor<1x3xi32>', expected tensor<2x3xi32>}}
  %0 = nn.rope %x at %p : tensor<1x3xi32> dim 1 theta 1.0e+04 : tensor<2x3x12x8xf32>
  return
}

// -----

func.func @rope_c5_type(%x: tensor<2x3x12x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error @below {{'positions' has type 'tensor<2x3xi64>', expected tensor<2x3xi32>}}
  %0 = nn.rope %x at %p : tensor<2x3xi64> dim 1 theta 1.0e+04 : tensor<2x3x12x8xf32>
  return
}
