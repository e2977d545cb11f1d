// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1_last(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has order 'b h d t', expected the letters b, h, t, and n where one input holds queries, keys and values, with single spaces between them, then d}}
  %0:2 = nn.attention "b h d t" %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c1_twice(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has order 'b h h d', expected the letters b, h, t, and n where one input holds queries, keys and values, with single spaces between them, then d}}
  %0:2 = nn.attention "b h h d" %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c1_letter(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has order 'b h s d', expected the letters b, h, t, and n where one input holds queries, keys and values, with single spaces between them, then d}}
  %0:2 = nn.attention "b h s d" %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c1_spaces(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has order 'bhtd', expected the letters b, h, t, and n where one input holds queries, keys and values, with single spaces between them, then d}}
  %0:2 = nn.attention "bhtd" %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c1_short(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has order 'h t d', expected the letters b, h, t, and n where one input holds queries, keys and values, with single spaces between them, then d}}
  %0:2 = nn.attention "h t d" %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_one(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 1 inputs, expected 3 for the order 'b h t d'}}
  %0:2 = nn.attention %q scale 0.125 : (tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_three(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 3 inputs, expected 1 for the order 'n b h t d'}}
  %0:2 = nn.attention "n b h t d" %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_parts(%q: tensor<2x2x4x16x8xf32>) {
  // expected-error @below {{the input has type 'tensor<2x2x4x16x8xf32>', expected size 3 in dimension 1: queries, keys and values}}
  %0:2 = nn.attention "b n h t d" %q scale 0.125 : (tensor<2x2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_input(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{the input has type 'tensor<2x4x16x8xf32>', expected the 5 dimensions 'b n h t d'}}
  %0:2 = nn.attention "b n h t d" %q scale 0.125 : (tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_q(%q: tensor<4x16x8xf32>, %k: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'q' has type 'tensor<4x16x8xf32>', expected the 4 dimensions 'b h t d'}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<4x16x8xf32>, tensor<4x16xf32>)
  return
}

// -----

func.func @attention_c3_k(%q: tensor<2x4x16x8xf32>, %k: tensor<4x16x8xf32>) {
  // expected-error @below {{'k' has type 'tensor<4x16x8xf32>', expected the 4 dimensions 'b h t d'}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_batch(%q: tensor<2x4x16x8xf32>, %k: tensor<3x4x16x8xf32>) {
  // expected-error @below {{'k' has type 'tensor<3x4x16x8xf32>', expected batch 2 and width 8 as in 'q'}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<3x4x16x8xf32>, tensor<3x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_v(%q: tensor<2x4x16x8xf32>, %v: tensor<2x4x15x8xf32>) {
  // expected-error @below {{'v' has type 'tensor<2x4x15x8xf32>', expected the shape of 'k', 'tensor<2x4x16x8xf32>'}}
  %0:2 = nn.attention %q, %q, %v scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x15x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x4x16x8xf32>, %k: tensor<2x3x16x8xf32>) {
  // expected-error @below {{has 4 heads and 3 groups, expected the groups to divide the heads}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x3x16x8xf32>, tensor<2x3x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4_none(%q: tensor<2x4x16x8xf32>, %k: tensor<2x0x16x8xf32>) {
  // expected-error @below {{has 4 heads and 0 groups}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x0x16x8xf32>, tensor<2x0x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c4_order(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x3x8xf32>) {
  // expected-error @below {{has 16 heads and 3 groups, expected the groups to divide the heads}}
  %0:2 = nn.attention "b t h d" %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x16x4xf32>)
  return
}

// -----

func.func @attention_c5_out(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'out' has type 'tensor<2x4x16x7xf32>', expected 'tensor<2x4x16x8xf32>'}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x7xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_packed(%q: tensor<2x3x4x16x8xf32>) {
  // expected-error @below {{'out' has type 'tensor<2x16x4x8xf32>', expected 'tensor<2x4x16x8xf32>'}}
  %0:2 = nn.attention "b n h t d" %q scale 0.125 : (tensor<2x3x4x16x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_sums(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'log_sum_exp' has type 'tensor<2x16x4xf32>', expected batch 2, 4 heads and 16 queries}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x16x4xf32>)
  return
}

// -----

func.func @attention_c6_causal(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x15x8xf32>) {
  // expected-error @below {{has 15 keys for 16 queries, expected at least 16 so that every query sees one}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 causal : (tensor<2x4x16x8xf32>, tensor<2x4x15x8xf32>, tensor<2x4x15x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c6_none(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x0x8xf32>) {
  // expected-error @below {{has 0 keys for 16 queries, expected at least 1 so that every query sees one}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x0x8xf32>, tensor<2x4x0x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_sums(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{'log_sum_exp' has type 'tensor<2x4x16xf64>', expected element type 'f32' for sums of 'f32'}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf64>)
  return
}

// -----

func.func @attention_c7_operands(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x16x8xf64>) {
  // expected-error @below {{has an operand or result of type 'tensor<2x4x16x8xf64>', expected element type 'f32' as in the first operand}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf64>, tensor<2x4x16x8xf64>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_out(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has an operand or result of type 'tensor<2x4x16x8xf64>', expected element type 'f32' as in the first operand}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf64>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_grad_c4(%q: tensor<2x4x16x8xf32>, %k: tensor<2x3x16x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @below {{has 4 heads and 3 groups, expected the groups to divide the heads}}
  %0:3 = nn.attention_grad %q, %k, %k, %q, %l, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x3x16x8xf32>, tensor<2x3x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x3x16x8xf32>, tensor<2x3x16x8xf32>)
  return
}

// -----

func.func @attention_grad_c14_count(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @below {{has 2 results, expected 3: one for each input}}
  %0:2 = nn.attention_grad %q, %q, %q, %q, %l, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_grad_c14_type(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @below {{has a gradient #1 of type 'tensor<2x4x15x8xf32>', expected that of the input, 'tensor<2x4x16x8xf32>'}}
  %0:3 = nn.attention_grad %q, %q, %q, %q, %l, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x15x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_c2_documents(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 3 inputs, expected 4 for the order 'b h t d' with the ids of documents}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 documents : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_integers(%q: tensor<2x4x16x8xi32>) {
  // expected-error @below {{has an operand of type 'tensor<2x4x16x8xi32>', expected floats to attend with}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 : (tensor<2x4x16x8xi32>, tensor<2x4x16x8xi32>, tensor<2x4x16x8xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_window_size(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has window 0, expected a positive number of keys}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 causal window 0 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_window_causal(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has window 3 without 'causal', expected both, as a window ends at the query}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 window 3 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_softcap(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has softcap -1.000000e+00, expected a positive number}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 softcap -1.0 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_type(%q: tensor<2x4x16x8xf32>, %ids: tensor<2x16x1xi32>) {
  // expected-error @below {{has documents of type 'tensor<2x16x1xi32>', expected ids of 'tensor<2x16xi32>', one for each batch and key}}
  %0:2 = nn.attention %q, %q, %q, %ids scale 0.125 documents : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16x1xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_element(%q: tensor<2x4x16x8xf32>, %ids: tensor<2x16xf32>) {
  // expected-error @below {{has documents of type 'tensor<2x16xf32>', expected ids of 'tensor<2x16xi32>'}}
  %0:2 = nn.attention %q, %q, %q, %ids scale 0.125 documents : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c9_keys(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x15x8xf32>, %ids: tensor<2x15xi32>) {
  // expected-error @below {{has 15 keys for 16 queries, expected at least as many with documents, so that every query is at a key, whose document is its own}}
  %0:2 = nn.attention %q, %k, %k, %ids scale 0.125 documents : (tensor<2x4x16x8xf32>, tensor<2x4x15x8xf32>, tensor<2x4x15x8xf32>, tensor<2x15xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_grad_c8(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @below {{has window -2, expected a positive number of keys}}
  %0:3 = nn.attention_grad %q, %q, %q, %q, %l, %q scale 0.125 causal window -2 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_grad_c14_documents(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>, %ids: tensor<2x16xi32>) {
  // expected-error @below {{has 4 results, expected 3: one for each input but the ids}}
  %0:4 = nn.attention_grad %q, %q, %q, %ids, %q, %l, %q scale 0.125 documents : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16xi32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>)
  return
}

// -----

func.func @attention_c2_bias(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 3 inputs, expected 4 for the order 'b h t d' with a bias}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_bias_documents(%q: tensor<2x4x16x8xf32>, %ids: tensor<2x16xi32>) {
  // expected-error @below {{has 4 inputs, expected 5 for the order 'b h t d' with a bias and the ids of documents}}
  %0:2 = nn.attention %q, %q, %q, %ids scale 0.125 bias documents : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_heads(%q: tensor<2x4x16x8xf32>, %b: tensor<2x16x16xf32>) {
  // expected-error @below {{has a bias of type 'tensor<2x16x16xf32>', expected 'tensor<4x16x16xf32>', one for each head, or 'tensor<1x16x16xf32>', one for all heads}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_rank(%q: tensor<2x4x16x8xf32>, %b: tensor<16x16xf32>) {
  // expected-error @below {{has a bias of type 'tensor<16x16xf32>', expected 'tensor<4x16x16xf32>', one for each head, or 'tensor<1x16x16xf32>', one for all heads}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_keys(%q: tensor<2x4x16x8xf32>, %b: tensor<4x16x1xf32>) {
  // expected-error @below {{has a bias of type 'tensor<4x16x1xf32>', expected 'tensor<4x16x16xf32>', one for each head, or 'tensor<1x16x16xf32>', one for all heads}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x16x1xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_element(%q: tensor<2x4x16x8xf32>, %b: tensor<4x16x16xbf16>) {
  // expected-error @below {{has a bias of type 'tensor<4x16x16xbf16>', expected 'tensor<4x16x16xf32>', one for each head, or 'tensor<1x16x16xf32>', one for all heads}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x16x16xbf16>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_integers(%q: tensor<2x4x16x8xf32>, %b: tensor<4x16x16xi32>) {
  // expected-error @below {{has a bias of type 'tensor<4x16x16xi32>', expected 'tensor<4x16x16xf32>', one for each head, or 'tensor<1x16x16xf32>', one for all heads}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<4x16x16xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c10_one_head(%q: tensor<2x1x16x8xf32>, %b: tensor<2x16x16xf32>) {
  // expected-error @below {{has a bias of type 'tensor<2x16x16xf32>', expected 'tensor<1x16x16xf32>', one for all heads}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias : (tensor<2x1x16x8xf32>, tensor<2x1x16x8xf32>, tensor<2x1x16x8xf32>, tensor<2x16x16xf32>) -> (tensor<2x1x16x8xf32>, tensor<2x1x16xf32>)
  return
}

// -----

func.func @attention_grad_c14_bias(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>, %b: tensor<1x16x16xf32>) {
  // expected-error @below {{has 4 results, expected 3: one for each input but the bias}}
  %0:4 = nn.attention_grad %q, %q, %q, %b, %q, %l, %q scale 0.125 bias : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>)
  return
}

// -----

func.func @attention_grad_c14_bias_documents(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>, %b: tensor<1x16x16xf32>, %ids: tensor<2x16xi32>) {
  // expected-error @below {{has 4 results, expected 3: one for each input but the bias and the ids}}
  %0:4 = nn.attention_grad %q, %q, %q, %b, %ids, %q, %l, %q scale 0.125 bias documents : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>, tensor<2x16xi32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>)
  return
}

// -----

func.func @attention_bias_grad_c10(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @below {{has 3 inputs, expected 4 for the order 'b h t d' with a bias}}
  %0 = nn.attention_bias_grad %q, %q, %q, %q, %l, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> tensor<1x16x16xf32>
  return
}

// -----

func.func @attention_bias_grad_c14(%q: tensor<2x4x16x8xf32>, %l: tensor<2x4x16xf32>, %b: tensor<1x16x16xf32>) {
  // expected-error @below {{has a gradient of type 'tensor<4x16x16xf32>', expected that of the bias, 'tensor<1x16x16xf32>'}}
  %0 = nn.attention_bias_grad %q, %q, %q, %b, %q, %l, %q scale 0.125 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16x8xf32>) -> tensor<4x16x16xf32>
  return
}

// -----

func.func @rope_c1_rank(%x: tensor<8xf32>) {
  // expected-error @below {{takes positions from dimension 0 of 'tensor<8xf32>', expected a dimension before the last}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 : tensor<8xf32>
  return
}

// -----

func.func @rope_c1_last(%x: tensor<8x6xf32>) {
  // expected-error @below {{takes positions from dimension 1 of 'tensor<8x6xf32>', expected a dimension before the last}}
  %0 = nn.rope %x dim 1 theta 1.0e+04 : tensor<8x6xf32>
  return
}

// -----

func.func @rope_c1_odd(%x: tensor<8x7xf32>) {
  // expected-error @below {{has width 7, expected an even number, because pairs of elements are rotated}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 : tensor<8x7xf32>
  return
}

// -----

func.func @rope_c2(%x: tensor<8x6xf32>) {
  // expected-error @below {{has theta 0.000000e+00, expected a positive number}}
  %0 = nn.rope %x dim 0 theta 0.0 : tensor<8x6xf32>
  return
}

// -----

func.func @rope_c3_factor(%x: tensor<8x6xf32>) {
  // expected-error @below {{has factor -2.000000e+00, expected a positive number}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 factor -2.0 : tensor<8x6xf32>
  return
}

// -----

func.func @rope_c3_magnitude(%x: tensor<8x6xf32>) {
  // expected-error @below {{has magnitude 0.000000e+00, expected a positive number}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 magnitude 0.0 : tensor<8x6xf32>
  return
}

// -----

func.func @rope_c4_alone(%x: tensor<8x6xf32>) {
  // expected-error @below {{expected 'ramp', 'from' and 'to' together, and with a 'factor'}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 factor 2.0 ramp index from 1.0 : tensor<8x6xf32>
  return
}

// -----

func.func @rope_c4_no_factor(%x: tensor<8x6xf32>) {
  // expected-error @below {{expected 'ramp', 'from' and 'to' together, and with a 'factor'}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 ramp index from 1.0 to 2.0 : tensor<8x6xf32>
  return
}

// -----

func.func @rope_c4_equal(%x: tensor<8x6xf32>) {
  // expected-error @below {{has a ramp from 1.000000e+00 to 1.000000e+00, expected two different finite numbers}}
  %0 = nn.rope %x dim 0 theta 1.0e+04 factor 2.0 ramp rate from 1.0 to 1.0 : tensor<8x6xf32>
  return
}

// -----

func.func @attention_c11_keys(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x20x8xf32>) {
  // expected-error @below {{has 20 keys for 16 queries, expected as many with 'exchange', whose ranks have those of the same positions}}
  %0:2 = nn.attention %q, %k, %k scale 0.125 exchange gather : (tensor<2x4x16x8xf32>, tensor<2x4x20x8xf32>, tensor<2x4x20x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_both(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 'at' and 'exchange', expected one of them: partitioning replaces 'exchange' by 'at'}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 exchange ring at [0, 16] over ["context"] : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_bias(%q: tensor<2x4x16x8xf32>, %b: tensor<1x16x16xf32>) {
  // expected-error @below {{has a bias with 'exchange ring', expected 'exchange gather', where each rank has all keys}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 bias exchange ring : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c11_documents(%q: tensor<2x4x16x8xf32>, %ids: tensor<2x16xi32>) {
  // expected-error @below {{has the ids of documents with 'exchange ring', expected 'exchange gather', where each rank has all keys}}
  %0:2 = nn.attention %q, %q, %q, %ids scale 0.125 documents exchange ring : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c12_none(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{expected 'at' and 'over' together, with one number for each rank}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 at [] over ["context"] : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c12_alone(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{expected 'at' and 'over' together, with one number for each rank}}
  %0:2 = "nn.attention"(%q, %q, %q) <{scale = 0.125 : f64, over = ["context"]}> : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c12_documents(%q: tensor<2x4x16x8xf32>, %ids: tensor<2x16xi32>) {
  // expected-error @below {{has queries at 1 to 16, expected keys from 0 to 15 with documents, so that every query is at a key}}
  %0:2 = nn.attention %q, %q, %q, %ids scale 0.125 documents at [0, 1] over ["context"] : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x16xi32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_exchange(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 'zigzag', expected 'exchange' and 'causal' with it, and no bias}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 causal zigzag 2 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_causal(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 'zigzag', expected 'exchange' and 'causal' with it, and no bias}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 exchange ring zigzag 2 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_bias(%q: tensor<2x4x16x8xf32>, %b: tensor<1x16x16xf32>) {
  // expected-error @below {{has 'zigzag', expected 'exchange' and 'causal' with it, and no bias}}
  %0:2 = nn.attention %q, %q, %q, %b scale 0.125 causal bias exchange gather zigzag 2 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<1x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_one(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 'zigzag' 1 for 16 positions, expected at least 2 ranks with two chunks of as many positions each}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 causal exchange ring zigzag 1 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c13_size(%q: tensor<2x4x16x8xf32>) {
  // expected-error @below {{has 'zigzag' 3 for 16 positions, expected at least 2 ranks with two chunks of as many positions each}}
  %0:2 = nn.attention %q, %q, %q scale 0.125 causal exchange ring zigzag 3 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}
