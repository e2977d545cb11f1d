// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

func.func @scan_sum_c1_count(%x: tensor<8x16xf32>) {
  // expected-error @below {{has notation 'b' for 'tensor<8x16xf32>', expected a name for each dimension, with single spaces between them}}
  %0 = nn.scan_sum "b" along "b" %x : tensor<8x16xf32>
  return
}

// -----

func.func @scan_sum_c1_spaces(%x: tensor<8x16xf32>) {
  // expected-error @below {{has notation 'b  s' for 'tensor<8x16xf32>', expected a name}}
  %0 = nn.scan_sum "b  s" along "b" %x : tensor<8x16xf32>
  return
}

// -----

func.func @scan_sum_c1_name(%x: tensor<8x16xf32>) {
  // expected-error @below {{has notation 'b 1' for 'tensor<8x16xf32>', expected a name}}
  %0 = nn.scan_sum "b 1" along "b" %x : tensor<8x16xf32>
  return
}

// -----

func.func @scan_sum_c2(%x: tensor<8x16xf32>) {
  // expected-error @below {{names two dimensions 'b', expected distinct names}}
  %0 = nn.scan_sum "b b" along "b" %x : tensor<8x16xf32>
  return
}

// -----

func.func @scan_sum_c3(%x: tensor<8x16xf32>) {
  // expected-error @below {{sums along 't', expected one of the names of 'b s'}}
  %0 = nn.scan_sum "b s" along "t" %x : tensor<8x16xf32>
  return
}

// -----

func.func @scan_sum_c3_scalar(%x: tensor<f32>) {
  // expected-error @below {{sums along 's', expected one of the names of ''}}
  %0 = nn.scan_sum "" along "s" %x : tensor<f32>
  return
}
