// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @embedding_c1(%table: tensor<256xf32>, %ids: tensor<8xi32>) {
  // expected-error @below {{'table' has type 'tensor<256xf32>', expected rank 2: rows and width}}
  %0 = nn.embedding %table, %ids : tensor<256xf32>, tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

func.func @embedding_c2(%table: tensor<256x64xf32>, %ids: tensor<8xi32>) {
  // expected-error @below {{'result' has type 'tensor<8x32xf32>', expected the shape of 'tensor<8xi32>' followed by the width 64}}
  %0 = nn.embedding %table, %ids : tensor<256x64xf32>, tensor<8xi32> -> tensor<8x32xf32>
  return
}

// -----

func.func @embedding_c3(%table: tensor<256x64xf32>, %ids: tensor<8xi32>) {
  // expected-error @below {{'result' has element type 'bf16', expected 'f32' as in the table}}
  %0 = nn.embedding %table, %ids : tensor<256x64xf32>, tensor<8xi32> -> tensor<8x64xbf16>
  return
}

// -----

func.func @embedding_grad_c1(%ids: tensor<8xi32>, %d: tensor<8x64xf32>) {
  // expected-error @below {{'result' has type 'tensor<256x8x8xf32>', expected rank 2: rows and width}}
  %0 = nn.embedding_grad %ids, %d : tensor<8xi32>, tensor<8x64xf32> -> tensor<256x8x8xf32>
  return
}

// -----

func.func @embedding_grad_c2(%ids: tensor<9xi32>, %d: tensor<8x64xf32>) {
  // expected-error @below {{'d_out' has type 'tensor<8x64xf32>', expected the shape of 'tensor<9xi32>' followed by the width 64}}
  %0 = nn.embedding_grad %ids, %d : tensor<9xi32>, tensor<8x64xf32> -> tensor<256x64xf32>
  return
}

// -----

func.func @embedding_grad_c3(%ids: tensor<8xi32>, %d: tensor<8x64xf64>) {
  // expected-error @below {{'result' has element type 'f32', expected 'f64' for sums of 'd_out'}}
  %0 = nn.embedding_grad %ids, %d : tensor<8xi32>, tensor<8x64xf64> -> tensor<256x64xf32>
  return
}
