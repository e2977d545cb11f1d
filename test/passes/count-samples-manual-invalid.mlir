// What an evaluation cannot leave out of a region is said.
// RUN: fsdp-opt %s --split-input-file --fsdp-inline-manual --fsdp-count-samples --verify-diagnostics

// A sum over ranks of what is still there for each sample adds up different samples.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, []>] : (tensor<8x4xf32>) -> tensor<f64> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-warning @below {{evaluation uses full batches only: 'fsdp.psum' combines samples of ranks in a manual region, of which it cannot leave out some}}
    %mixed = fsdp.psum %own over ["fsdp"] : tensor<4x4xf32>
    %sum = nn.reduce sum "b d ->" %mixed : tensor<4x4xf32> -> tensor<f64>
    fsdp.yield %sum : tensor<f64>
  }
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %y over %weight
}

// -----

// A maximum over the samples of a rank.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, []>] : (tensor<8x4xf32>) -> tensor<f64> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-warning @below {{evaluation uses full batches only: 'nn.reduce' combines the samples of a rank in a manual region, where only sums over whole samples can leave out some}}
    %max = nn.reduce max "b d -> d" %own : tensor<4x4xf32> -> tensor<4xf32>
    %all = fsdp.pmax %max over ["fsdp"] : tensor<4xf32>
    %sum = nn.reduce sum "d ->" %all : tensor<4xf32> -> tensor<f64>
    fsdp.yield %sum : tensor<f64>
  }
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %y over %weight
}

// -----

// Samples that leave a region in other parts than those of its ranks.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%own: tensor<4x4xf32>):
    // expected-warning @below {{evaluation uses full batches only: a manual region has the samples of a batch in parts that are not those of its ranks, of which it cannot leave out some}}
    %own2 = nn.rearrange "b d -> d b" %own : tensor<4x4xf32> -> tensor<4x4xf32>
    fsdp.yield %own2 : tensor<4x4xf32>
  }
  %sum = nn.reduce sum "b d ->" %y : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Samples of two kinds of ranks in one value.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %sum = fsdp.manual(%x, %x) over ["fsdp", "tensor"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{"tensor"}, {}]>]
      out [#fsdp.sharding<@mesh, []>] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f64> {
  ^bb0(%own: tensor<4x4xf32>, %other: tensor<4x4xf32>):
    // expected-warning @below {{evaluation uses full batches only: 'arith.addf' has operands whose samples are split over ["fsdp"] and over ["tensor"] in a manual region}}
    %both = arith.addf %own, %other : tensor<4x4xf32>
    %terms = nn.reduce sum "b d ->" %both : tensor<4x4xf32> -> tensor<f64>
    %all = fsdp.psum %terms over ["fsdp", "tensor"] : tensor<f64>
    fsdp.yield %all : tensor<f64>
  }
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

// Samples that every rank has are stacked.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %y = fsdp.manual(%x) over ["fsdp"] in [#fsdp.sharding<@mesh, [{}, {}]>] out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>]
      : (tensor<8x4xf32>) -> tensor<16x4xf32> {
  // expected-warning @below {{evaluation uses full batches only: a manual region has the samples of a batch in parts that are not those of its ranks, of which it cannot leave out some}}
  ^bb0(%all: tensor<8x4xf32>):
    fsdp.yield %all : tensor<8x4xf32>
  }
  %sum = nn.reduce sum "b d ->" %y : tensor<16x4xf32> -> tensor<f64>
  %weight = arith.constant dense<16.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
