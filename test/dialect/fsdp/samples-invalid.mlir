// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// sample_count C1: the batch has samples.

fsdp.step @evaluate evaluate {
  // expected-error @below {{counts samples of a batch of 0, expected 1 to 2^48}}
  %n = fsdp.sample_count of 0
}

// -----

fsdp.step @evaluate evaluate {
  // expected-error @below {{counts samples of a batch of 281474976710657, expected 1 to 2^48}}
  %n = fsdp.sample_count of 281474976710657
}

// -----

fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 8
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{fills with NaN, expected a number or an infinity}}
  %m = "fsdp.mask_samples"(%x, %n) {dim = 0 : i64, fill = 0x7FF8000000000000 : f64} : (tensor<8xf32>, tensor<i64>) -> tensor<8xf32>
}

// -----

fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 8
  %x = fsdp.input "x" sample_dim 0 : tensor<8xi32>
  // expected-error @below {{fills with 2.147484e+09, expected an infinity or a value of 'i32'}}
  %m = fsdp.mask_samples %x, %n dim 0 fill 2147483648.0 : tensor<8xi32>
}

// -----

fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 8
  %x = fsdp.input "x" sample_dim 0 : tensor<8xi32>
  // expected-error @below {{fills with 5.000000e-01, expected an infinity or a value of 'i32'}}
  %m = fsdp.mask_samples %x, %n dim 0 fill 0.5 : tensor<8xi32>
}

// -----

// mask_samples C1: the dimension exists and holds whole samples.

fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 8
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{masks dimension 1, expected a dimension below 1}}
  %m = fsdp.mask_samples %x, %n dim 1 fill 0.0 : tensor<8xf32>
}

// -----

fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 8
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{has 3 elements per sample along a dimension of 8, expected a divisor of its size}}
  %m = fsdp.mask_samples %x, %n dim 0 rows 3 fill 0.0 : tensor<8xf32>
}

// -----

// mask_samples C2: a part of a dimension says of which one, and over which axes.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 10
  %x = fsdp.input "x" sample_dim 0 : tensor<3xf32>
  // expected-error @below {{has one of 'shard_of' and 'over', expected both or neither}}
  %m = "fsdp.mask_samples"(%x, %n) {dim = 0 : i64, shard_of = 10 : i64, fill = 0.0 : f64} : (tensor<3xf32>, tensor<i64>) -> tensor<3xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 10
  %x = fsdp.input "x" sample_dim 0 : tensor<3xf32>
  // expected-error @below {{has 3 elements along dimension 0, expected 4 (13 over 4 ranks)}}
  %m = fsdp.mask_samples %x, %n dim 0 shard_of 13 over ["fsdp"] fill 0.0 : tensor<3xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @evaluate evaluate {
  %n = fsdp.sample_count of 10
  %x = fsdp.input "x" sample_dim 0 : tensor<3xf32>
  // expected-error @below {{is split over axis 'data', which the mesh lacks}}
  %m = fsdp.mask_samples %x, %n dim 0 shard_of 10 over ["data"] fill 0.0 : tensor<3xf32>
}

// -----

// microbatch_samples C1: the batch has samples, and parts.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{counts samples of a batch of 10 in 0 microbatches, expected 1 to 2^48}}
    %n = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 0
  }
}

// -----

// microbatch_samples C2: axes of the mesh.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is split over axis 'data', which the mesh lacks}}
    %n = fsdp.microbatch_samples of 10 over ["data"] microbatches 2
  }
}

// -----

// microbatch_samples C3: the number is that of one of the microbatches.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is 'at' microbatch 2, expected 0 to 1, as there are 2 microbatches}}
    %n = fsdp.microbatch_samples of 10 over ["fsdp"] microbatches 2 at 2
  }
}
