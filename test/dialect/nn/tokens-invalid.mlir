// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @positions_since_c1(%t: tensor<i32>) {
  // expected-error @below {{has tokens of type 'tensor<i32>', expected a dimension of positions}}
  %0 = nn.positions_since [7] in %t : tensor<i32> -> tensor<i32>
  return
}

// -----

func.func @positions_since_c2_shape(%t: tensor<2x4xi32>) {
  // expected-error @below {{has result type 'tensor<2x3xi32>', expected 'tensor<2x4xi32>'}}
  %0 = nn.positions_since [7] in %t : tensor<2x4xi32> -> tensor<2x3xi32>
  return
}

// -----

func.func @positions_since_c2_element(%t: tensor<2x4xi64>) {
  // expected-error @below {{has result type 'tensor<2x4xi64>', expected 'tensor<2x4xi32>'}}
  %0 = nn.positions_since [7] in %t : tensor<2x4xi64> -> tensor<2x4xi64>
  return
}

// -----

func.func @positions_since_c3_none(%t: tensor<2x4xi32>) {
  // expected-error @below {{has a sequence of 0 tokens, expected 1 to 16 of them}}
  %0 = nn.positions_since [] in %t : tensor<2x4xi32> -> tensor<2x4xi32>
  return
}

// -----

func.func @positions_since_c3_many(%t: tensor<2x4xi32>) {
  // expected-error @below {{has a sequence of 17 tokens, expected 1 to 16 of them}}
  %0 = nn.positions_since [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17] in %t : tensor<2x4xi32> -> tensor<2x4xi32>
  return
}

// -----

func.func @positions_since_c3_negative(%t: tensor<2x4xi32>) {
  // expected-error @below {{has the token -1, expected none below 0}}
  %0 = nn.positions_since [3, -1] in %t : tensor<2x4xi32> -> tensor<2x4xi32>
  return
}
