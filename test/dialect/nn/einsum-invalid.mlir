// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @einsum_no_arrow(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation 'ab,bc' has no '->'}}
  %0 = nn.einsum "ab,bc" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_two_arrows(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation 'ab,bc->ac->a' has more than one '->'}}
  %0 = nn.einsum "ab,bc->ac->a" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_no_letter(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation 'a1,1b->ab' has '1' where a letter is expected}}
  %0 = nn.einsum "a1,1b->ab" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_c1_operands(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation has 1 operands, expected 2 separated by ','}}
  %0 = nn.einsum "ab->ab" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_c1_spelling(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation is not in canonical spelling: got 'ab, ab -> ab', expected 'ab,ab->ab'}}
  %0 = nn.einsum "ab, ab -> ab" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_c2(%x: tensor<2x2xf32>) {
  // expected-error @below {{name 'a' appears twice in operand 0}}
  %0 = nn.einsum "aa,ab->ab" %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @einsum_c2_result(%x: tensor<2x2xf32>) {
  // expected-error @below {{name 'a' appears twice in the result}}
  %0 = nn.einsum "ab,ab->aa" %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @einsum_c3_lone(%x: tensor<2x3xf32>) {
  // expected-error @below {{name 'b' appears in one operand only; sum over it with 'nn.reduce' first}}
  %0 = nn.einsum "ab,ac->ac" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_c3_result(%x: tensor<2x3xf32>) {
  // expected-error @below {{name 'c' of the result appears in no operand; add it with 'nn.repeat'}}
  %0 = nn.einsum "ab,ab->abc" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @einsum_c4(%x: tensor<2x3xf32>, %w: tensor<4x5xf32>) {
  // expected-error @below {{dimension 0 of operand 1: got 4, expected 3 ('b' is 3 by dimension 1 of operand 0)}}
  %0 = nn.einsum "ab,bc->ac" %x, %w : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @einsum_c4_result(%x: tensor<2x3xf32>, %w: tensor<3x5xf32>) {
  // expected-error @below {{dimension 1 of the result: got 6, expected 5 ('c' is 5 by dimension 1 of operand 1)}}
  %0 = nn.einsum "ab,bc->ac" %x, %w : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @einsum_rank(%x: tensor<2x3xf32>) {
  // expected-error @below {{operand 0 has rank 2, the notation names 3 dimensions}}
  %0 = nn.einsum "abd,bc->acd" %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @einsum_static(%x: tensor<?x3xf32>) {
  // expected-error @below {{must be statically shaped tensor}}
  %0 = nn.einsum "ab,ab->ab" %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>
  return
}
