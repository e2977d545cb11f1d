// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @rearrange_name(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation 'a 2 -> 2 a' has '2' where a name is expected}}
  %0 = nn.rearrange "a 2 -> 2 a" %x : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @rearrange_open(%x: tensor<6xf32>) {
  // expected-error @below {{has an unbalanced '('}}
  %0 = nn.rearrange "(a b -> a b" %x : tensor<6xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @rearrange_close(%x: tensor<6xf32>) {
  // expected-error @below {{has an unbalanced ')'}}
  %0 = nn.rearrange "a b) -> a b" %x : tensor<6xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @rearrange_c1(%x: tensor<2x3xf32>) {
  // expected-error @below {{notation is not in canonical spelling: got 'a  (b)-> b a', expected 'a b -> b a'}}
  %0 = nn.rearrange "a  (b)-> b a" %x : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @rearrange_c2_result(%x: tensor<2x3xf32>) {
  // expected-error @below {{name 'b' is missing from the result}}
  %0 = nn.rearrange "a b -> a" %x : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @rearrange_c2_operand(%x: tensor<2x3xf32>) {
  // expected-error @below {{name 'c' is missing from the operand}}
  %0 = nn.rearrange "a b -> a b c" %x : tensor<2x3xf32> -> tensor<2x3x1xf32>
  return
}

// -----

func.func @rearrange_c2_twice(%x: tensor<2x2xf32>) {
  // expected-error @below {{name 'a' appears twice in operand 0}}
  %0 = nn.rearrange "a a -> a" %x : tensor<2x2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @rearrange_c3_divide(%x: tensor<6x5xf32>) {
  // expected-error @below {{dimension 1 of the result is 12, expected a multiple of 5 to solve 'b'}}
  %0 = nn.rearrange "(a b) c -> a (b c)" %x : tensor<6x5xf32> -> tensor<2x12xf32>
  return
}

// -----

func.func @rearrange_c3_unknown(%x: tensor<6x4xf32>) {
  // expected-error @below {{the size of 'a' does not follow from the shapes; give it in 'sizes'}}
  %0 = nn.rearrange "(a b) c -> (b a) c" %x : tensor<6x4xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @rearrange_c3_product(%x: tensor<6xf32>) {
  // expected-error @below {{dimension 0 of the operand: got 6, expected 8 ('a' is 2 by dimension 0 of the result, 'b' is 4 by dimension 1 of the result)}}
  %0 = nn.rearrange "(a b) -> a b" %x : tensor<6xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @rearrange_c3_superfluous(%x: tensor<6xf32>) {
  // expected-error @below {{size of 'a' follows from the shapes; leave it out of 'sizes'}}
  %0 = nn.rearrange "(a b) -> a b" %x sizes {a = 2} : tensor<6xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @rearrange_c3_stranger(%x: tensor<6xf32>) {
  // expected-error @below {{'sizes' has 'c', which the notation does not name}}
  %0 = nn.rearrange "(a b) -> (b a)" %x sizes {c = 2} : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @rearrange_c3_no_size(%x: tensor<6xf32>) {
  // expected-error @below {{size of 'a' is "two", expected a non-negative i64}}
  %0 = nn.rearrange "(a b) -> (b a)" %x sizes {a = "two"} : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @rearrange_c3_empty(%x: tensor<6xf32>) {
  // expected-error @below {{'sizes' is empty; leave it out}}
  %0 = nn.rearrange "a -> a" %x sizes {} : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @rearrange_element(%x: tensor<6xf32>) {
  // expected-error @below {{failed to verify that all of {input, result} have same element type}}
  %0 = nn.rearrange "(a b) -> a b" %x : tensor<6xf32> -> tensor<2x3xf64>
  return
}
