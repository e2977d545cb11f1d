// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @repeat_c1_group(%x: tensor<2xf32>) {
  // expected-error @below {{takes one name per dimension; use 'nn.rearrange' for groups and dimensions of size one}}
  %0 = nn.repeat "a -> (a b)" %x : tensor<2xf32> -> tensor<6xf32>
  return
}

// -----

func.func @repeat_c1_one(%x: tensor<2xf32>) {
  // expected-error @below {{takes one name per dimension}}
  %0 = nn.repeat "a -> a 1" %x : tensor<2xf32> -> tensor<2x1xf32>
  return
}

// -----

func.func @repeat_c1_spelling(%x: tensor<2xf32>) {
  // expected-error @below {{notation is not in canonical spelling: got 'a->b a', expected 'a -> b a'}}
  %0 = nn.repeat "a->b a" %x : tensor<2xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @repeat_c2(%x: tensor<2x3xf32>) {
  // expected-error @below {{name 'b' is missing from the result; reduce over it with 'nn.reduce'}}
  %0 = nn.repeat "a b -> a c" %x : tensor<2x3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @repeat_c2_twice(%x: tensor<2xf32>) {
  // expected-error @below {{name 'b' appears twice in the result}}
  %0 = nn.repeat "a -> a b b" %x : tensor<2xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @repeat_c3(%x: tensor<2xf32>) {
  // expected-error @below {{dimension 1 of the result: got 3, expected 2}}
  %0 = nn.repeat "a -> b a" %x : tensor<2xf32> -> tensor<4x3xf32>
  return
}
