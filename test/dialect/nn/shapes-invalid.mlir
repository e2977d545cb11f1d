// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @slice_c1_dim(%x: tensor<8x16xf32>) {
  // expected-error @below {{works along dimension 2, expected one of the 2 dimensions of 'tensor<8x16xf32>'}}
  %0 = nn.slice %x dim 2 start 0 : tensor<8x16xf32> -> tensor<8x5xf32>
  return
}

// -----

func.func @slice_c1_rank(%x: tensor<8x16xf32>) {
  // expected-error @below {{maps 'tensor<8x16xf32>' to 'tensor<5xf32>', expected the same shape except in dimension 1}}
  %0 = nn.slice %x dim 1 start 0 : tensor<8x16xf32> -> tensor<5xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<8x16xf32>) {
  // expected-error @below {{maps 'tensor<8x16xf32>' to 'tensor<7x5xf32>', expected the same shape except in dimension 1}}
  %0 = nn.slice %x dim 1 start 0 : tensor<8x16xf32> -> tensor<7x5xf32>
  return
}

// -----

func.func @slice_c3_end(%x: tensor<8x16xf32>) {
  // expected-error @below {{has a range of 5 elements from 12 in a dimension of 16, expected a range inside the dimension}}
  %0 = nn.slice %x dim 1 start 12 : tensor<8x16xf32> -> tensor<8x5xf32>
  return
}

// -----

func.func @slice_c3_last(%x: tensor<8x16xf32>) {
  // expected-error @below {{has a range of 5 elements from 9223372036854775807 in a dimension of 16, expected a range inside the dimension}}
  %0 = nn.slice %x dim 1 start 9223372036854775807 : tensor<8x16xf32> -> tensor<8x5xf32>
  return
}

// -----

func.func @slice_c3_start(%x: tensor<8x16xf32>) {
  // expected-error @below {{has a range of 5 elements from -1}}
  %0 = nn.slice %x dim 1 start -1 : tensor<8x16xf32> -> tensor<8x5xf32>
  return
}

// -----

func.func @pad_c1(%x: tensor<8x16xf32>) {
  // expected-error @below {{works along dimension -1, expected one of the 2 dimensions}}
  %0 = nn.pad %x dim -1 low 0 : tensor<8x16xf32> -> tensor<8x20xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<8x16xf32>) {
  // expected-error @below {{expected the same shape except in dimension 0}}
  %0 = nn.pad %x dim 0 low 0 : tensor<8x16xf32> -> tensor<8x20xf32>
  return
}

// -----

func.func @pad_c3(%x: tensor<8x16xf32>) {
  // expected-error @below {{has a range of 16 elements from 5 in a dimension of 20, expected a range inside the dimension}}
  %0 = nn.pad %x dim 1 low 5 : tensor<8x16xf32> -> tensor<8x20xf32>
  return
}

// -----

func.func @concat_c1_none() {
  // expected-error @below {{has no inputs, expected at least one tensor}}
  %0 = nn.concat dim 0 : () -> tensor<0xf32>
  return
}

// -----

func.func @concat_c1_dim(%x: tensor<8x16xf32>) {
  // expected-error @below {{works along dimension 2}}
  %0 = nn.concat %x dim 2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @concat_c2_sizes(%x: tensor<8x16xf32>, %y: tensor<7x3xf32>) {
  // expected-error @below {{maps 'tensor<8x19xf32>' to 'tensor<7x3xf32>'}}
  %0 = nn.concat %x, %y dim 1 : (tensor<8x16xf32>, tensor<7x3xf32>) -> tensor<8x19xf32>
  return
}

// -----

func.func @concat_c2_elements(%x: tensor<8xf32>, %y: tensor<7xf64>) {
  // expected-error @below {{concatenates 'tensor<7xf64>', expected element type 'f32' as in the result}}
  %0 = nn.concat %x, %y dim 0 : (tensor<8xf32>, tensor<7xf64>) -> tensor<15xf32>
  return
}

// -----

func.func @concat_c3(%x: tensor<8xf32>, %y: tensor<7xf32>) {
  // expected-error @below {{concatenates 15 elements along dimension 0, expected the result's 16}}
  %0 = nn.concat %x, %y dim 0 : (tensor<8xf32>, tensor<7xf32>) -> tensor<16xf32>
  return
}
