// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy_c1_labels(%x: tensor<8x10xf32>, %l: tensor<10xi32>) {
  // expected-error @below {{'labels' has type 'tensor<10xi32>', expected the shape of the rows of 'tensor<8x10xf32>'}}
  %0:2 = nn.cross_entropy %x, %l : tensor<8x10xf32>, tensor<10xi32> -> tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @cross_entropy_c1_loss(%x: tensor<8x10xf32>, %l: tensor<8xi32>) {
  // expected-error @below {{'loss' has type 'tensor<f32>', expected the shape of the rows}}
  %0:2 = nn.cross_entropy %x, %l : tensor<8x10xf32>, tensor<8xi32> -> tensor<f32>, tensor<8xf32>
  return
}

// -----

func.func @cross_entropy_c1_lse(%x: tensor<8x10xf32>, %l: tensor<8xi32>) {
  // expected-error @below {{'log_sum_exp' has type 'tensor<8x1xf32>', expected the shape of the rows}}
  %0:2 = nn.cross_entropy %x, %l : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @cross_entropy_c2(%x: tensor<8x10xf32>, %l: tensor<8xi32>) {
  // expected-error @below {{'loss' has element type 'f64', expected 'f32' for sums of logits}}
  %0:2 = nn.cross_entropy %x, %l : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf64>, tensor<8xf32>
  return
}

// -----

func.func @cross_entropy_c3(%x: tensor<f32>, %l: tensor<i32>) {
  // expected-error @below {{'logits' has rank 0, expected at least 1}}
  %0:2 = nn.cross_entropy %x, %l : tensor<f32>, tensor<i32> -> tensor<f32>, tensor<f32>
  return
}

// -----

func.func @cross_entropy_grad_c1(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %lse: tensor<8xf32>, %d: tensor<9xf32>) {
  // expected-error @below {{'d_loss' has type 'tensor<9xf32>', expected the shape of the rows}}
  %0 = nn.cross_entropy_grad %x, %l, %lse, %d : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<9xf32>
  return
}

// -----

func.func @cross_entropy_grad_c2(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %lse: tensor<8xf32>, %d: tensor<8xf64>) {
  // expected-error @below {{'d_loss' has element type 'f64', expected 'f32' for sums of logits}}
  %0 = nn.cross_entropy_grad %x, %l, %lse, %d : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf64>
  return
}

// -----

func.func @cross_entropy_grad_c3(%x: tensor<f32>, %l: tensor<i32>, %d: tensor<f32>) {
  // expected-error @below {{'logits' has rank 0}}
  %0 = nn.cross_entropy_grad %x, %l, %d, %d : tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @argmax_c1(%x: tensor<8x10xf32>) {
  // expected-error @below {{'result' has type 'tensor<10xi32>', expected the shape of the rows}}
  %0 = nn.argmax %x : tensor<8x10xf32> -> tensor<10xi32>
  return
}

// -----

func.func @argmax_c2_empty(%x: tensor<8x0xf32>) {
  // expected-error @below {{'input' has an empty last dimension, expected at least one element}}
  %0 = nn.argmax %x : tensor<8x0xf32> -> tensor<8xi32>
  return
}

// -----

func.func @argmax_c2_scalar(%x: tensor<f32>) {
  // expected-error @below {{'input' has rank 0}}
  %0 = nn.argmax %x : tensor<f32> -> tensor<i32>
  return
}

// -----

func.func @partial_cross_entropy_c1_labels(%x: tensor<8x10xf32>, %l: tensor<9xi32>, %n: tensor<i64>) {
  // expected-error @below {{'labels' has type 'tensor<9xi32>', expected the shape of the rows of 'tensor<8x10xf32>'}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<9xi32> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @partial_cross_entropy_c1_max(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>) {
  // expected-error @below {{'max' has type 'tensor<f32>', expected the shape of the rows}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<8xi32> -> tensor<f32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @partial_cross_entropy_c2_max(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>) {
  // expected-error @below {{'max' has element type 'f64', expected 'f32' for sums of logits}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf64>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @partial_cross_entropy_c1_sum(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>) {
  // expected-error @below {{'sum' has type 'tensor<f32>', expected the shape of the rows}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<f32>, tensor<8xf32>
  return
}

// -----

func.func @partial_cross_entropy_c2_sum(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>) {
  // expected-error @below {{'sum' has element type 'f64', expected 'f32' for sums of logits}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf64>, tensor<8xf32>
  return
}

// -----

func.func @partial_cross_entropy_c1_picked(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>) {
  // expected-error @below {{'picked' has type 'tensor<f32>', expected the shape of the rows}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>, tensor<f32>
  return
}

// -----

func.func @partial_cross_entropy_c2_picked(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>) {
  // expected-error @below {{'picked' has element type 'f64', expected 'f32' for sums of logits}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf64>
  return
}

// -----

func.func @partial_cross_entropy_c3(%x: tensor<f32>, %l: tensor<i32>, %n: tensor<i64>) {
  // expected-error @below {{'logits' has rank 0, expected at least 1}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n : tensor<f32>, tensor<i32> -> tensor<f32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @cross_entropy_c1_upstream(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %d: tensor<9xf32>) {
  // expected-error @below {{'d_loss' has type 'tensor<9xf32>', expected the shape of the rows}}
  %0:3 = nn.cross_entropy %x, %l upstream %d : tensor<8x10xf32>, tensor<8xi32> upstream tensor<9xf32> -> tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
  return
}

// -----

func.func @cross_entropy_c4_upstream(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %d: tensor<8xf32>) {
  // expected-error @below {{has 'd_loss' without a 'gradient', expected both or neither}}
  %0:2 = nn.cross_entropy %x, %l upstream %d : tensor<8x10xf32>, tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>
  return
}

// -----

func.func @cross_entropy_c4_gradient(%x: tensor<8x10xf32>, %l: tensor<8xi32>) {
  // expected-error @below {{has no 'd_loss' with a 'gradient', expected both or neither}}
  %0:3 = nn.cross_entropy %x, %l : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
  return
}

// -----

func.func @cross_entropy_c4_type(%x: tensor<8x10xbf16>, %l: tensor<8xi32>, %d: tensor<8xf32>) {
  // expected-error @below {{'gradient' has type 'tensor<8x10xf32>', expected 'tensor<8x10xbf16>' as 'logits'}}
  %0:3 = nn.cross_entropy %x, %l upstream %d : tensor<8x10xbf16>, tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
  return
}

// -----

func.func @partial_cross_entropy_c2_upstream(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>, %d: tensor<8xf64>) {
  // expected-error @below {{'d_loss' has element type 'f64', expected 'f32' for sums of logits}}
  %0:4 = nn.partial_cross_entropy %x, %l of %n upstream %d : tensor<8x10xf32>, tensor<8xi32> upstream tensor<8xf64> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x10xf32>
  return
}

// -----

func.func @partial_cross_entropy_c4(%x: tensor<8x10xf32>, %l: tensor<8xi32>, %n: tensor<i64>, %d: tensor<8xf32>) {
  // expected-error @below {{has 'd_loss' without a 'gradient', expected both or neither}}
  %0:3 = nn.partial_cross_entropy %x, %l of %n upstream %d : tensor<8x10xf32>, tensor<8xi32> upstream tensor<8xf32> -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}
