// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @reduce_c1(%x: tensor<6xf32>) {
  // expected-error @below {{takes one name per dimension}}
  %0 = nn.reduce sum "(a b) -> a" %x : tensor<6xf32> -> tensor<2xf32>
  return
}

// -----

func.func @reduce_c1_spelling(%x: tensor<6xf32>) {
  // expected-error @below {{notation is not in canonical spelling: got 'a -> ', expected 'a ->'}}
  %0 = nn.reduce sum "a -> " %x : tensor<6xf32> -> tensor<f32>
  return
}

// -----

func.func @reduce_c2(%x: tensor<6xf32>) {
  // expected-error @below {{name 'b' is missing from the operand; add it with 'nn.repeat'}}
  %0 = nn.reduce sum "a -> b" %x : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @reduce_c2_twice(%x: tensor<6x6xf32>) {
  // expected-error @below {{name 'a' appears twice in operand 0}}
  %0 = nn.reduce sum "a a -> a" %x : tensor<6x6xf32> -> tensor<6xf32>
  return
}

// -----

func.func @reduce_c3(%x: tensor<6x5xf32>) {
  // expected-error @below {{dimension 0 of the result: got 5, expected 6}}
  %0 = nn.reduce max "a b -> a" %x : tensor<6x5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @reduce_c3_rank(%x: tensor<6x5xf32>) {
  // expected-error @below {{the result has rank 2, the notation names 1 dimensions}}
  %0 = nn.reduce max "a b -> a" %x : tensor<6x5xf32> -> tensor<6x1xf32>
  return
}

// -----

func.func @reduce_c4_narrow(%x: tensor<6xf64>) {
  // expected-error @below {{result has element type 'f32', expected 'f64' or a wider float type}}
  %0 = nn.reduce sum "a ->" %x : tensor<6xf64> -> tensor<f32>
  return
}

// -----

func.func @reduce_c4_same_width(%x: tensor<6xf16>) {
  // expected-error @below {{result has element type 'bf16', expected 'f16' or a wider float type}}
  %0 = nn.reduce sum "a ->" %x : tensor<6xf16> -> tensor<bf16>
  return
}

// -----

func.func @reduce_c4_integer(%x: tensor<6xi32>) {
  // expected-error @below {{mean has element type 'i32', expected a float type; convert it with 'arith.sitofp'}}
  %0 = nn.reduce mean "a ->" %x : tensor<6xi32> -> tensor<i32>
  return
}

// -----

func.func @reduce_c4_bit(%x: tensor<6xi1>) {
  // expected-error @below {{cannot combine elements of type i1; convert them with 'arith.uitofp'}}
  %0 = nn.reduce sum "a ->" %x : tensor<6xi1> -> tensor<i1>
  return
}
