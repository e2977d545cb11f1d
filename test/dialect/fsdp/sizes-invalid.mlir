// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// Sizes are known and in bounds, so that no product or sum of them overflows.

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<4xf32>
    // expected-error @below {{takes more than 2^48 bytes; make it smaller}}
    %f = fsdp.flatten %c : (tensor<4xf32>) -> tensor<4611686018427387904xf32>
  }
}

// -----

fsdp.step @evaluate evaluate {
  // expected-error @below {{result #0 must be statically shaped tensor (at most 2^48 bytes)}}
  %x = fsdp.input "x" sample_dim 0 : tensor<?x4xf32>
}

// -----

fsdp.step @evaluate evaluate {
  // expected-error @below {{takes more than 2^48 bytes; make it smaller}}
  %x = fsdp.input "x" sample_dim 0 : tensor<4294967296x4294967296x0xf32>
}

// -----

fsdp.program @all role {} {
  // expected-error @below {{buffer holds 'tensor<281474976710656xf32>', expected a statically shaped tensor of numbers of at most 2^48 bytes}}
  %b = fsdp.buffer "b" persistent : !fsdp.buffer<tensor<281474976710656xf32>>
}

// -----

fsdp.program @all role {} {
  // expected-error @below {{has offset 9223372036854775744, expected a multiple of 64 from 0 to 2^48}}
  %b = fsdp.buffer "b" persistent offset 9223372036854775744 : !fsdp.buffer<tensor<8xf32>>
}

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{covers 4 elements from 9223372036854775806, expected a range within 0 to 8}}
    %v = fsdp.subview %b at 9223372036854775806 : !fsdp.buffer<tensor<8xf32>> -> !fsdp.buffer<tensor<4xf32>>
  }
}

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{covers 4 elements from 9223372036854775806, expected a range within 0 to 8}}
    %v = fsdp.view %c at 9223372036854775806 : tensor<8xf32> -> tensor<4xf32>
  }
}

// -----

// expected-error @below {{has an arena of -64 bytes, expected 0 to 2^49}}
fsdp.program @all role {} arena -64 {
}

// -----

// expected-error @below {{is not a valid shape, expected sizes of at most 2^48 elements together}}
fsdp.param @w : tensor<2x3xf32> unit "u" init <constant, 0.0> file_shape [-2, -3]

// -----

fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has member 'w' at 9223372036854775807, expected 0 to 2^48}}
fsdp.storage @u : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w at 9223372036854775807>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
// expected-error @below {{is split along a dimension and has its member at 1, expected 0}}
fsdp.storage @u : tensor<2xf32> dimension dim 0 over ["fsdp"] states [] members [#fsdp.member<@w at 1>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
// expected-error @below {{storage names axis 'fsdp' twice}}
fsdp.storage @u : tensor<4xf32> flat over ["fsdp", "fsdp"] states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %p = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{got 4294967296 states, expected 0 to 2}}
    %p1 = fsdp.optimizer_step <sgd, lr = 0.1> @s %p, %p states() lr %p scale %p if %p : tensor<8xf32> states 4294967296
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is part of a batch of -3 samples, expected at least 1}}
    %x = fsdp.input "x" sample_dim 0 shard_of -3 over ["fsdp"] : tensor<4xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    // expected-error @below {{is split over axis 'data', which the mesh lacks}}
    %x = fsdp.input "x" sample_dim 0 shard_of 8 over ["data"] : tensor<8xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{masks a dimension of -1 elements, expected 0 or more}}
    %m = fsdp.mask_padding %c dim 0 of -1 over ["fsdp"] fill 0.0 : tensor<8xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{has 'part_of' [-8], which is not a valid shape, expected sizes of at most 2^48 elements together}}
    %d = fsdp.dropout %c rate 1.0e-01 name "d" part_of [-8] over [["fsdp"]] : tensor<8xf32>
  }
}

// -----

// A kernel does not wait for other ranks.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    %f = nn.fused %c : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%x: tensor<8xf32>):
      // expected-error @below {{communicates between ranks and cannot be in 'nn.fused', which is one kernel; move it before or after}}
      %s = fsdp.all_reduce sum %x over ["fsdp"] : tensor<8xf32>
      nn.yield %s : tensor<8xf32>
    }
  }
}

// -----

// A collective runs over at least one axis.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{runs over no axes, expected at least one; use its operand instead}}
    %s = fsdp.all_reduce sum %c over [] : tensor<8xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{fills with NaN, expected a number or an infinity}}
    %m = "fsdp.mask_padding"(%c) {dim = 0 : i64, size = 16 : i64, over = ["fsdp"], fill = 0x7FF8000000000000 : f64} : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=1]>
// expected-error @below {{has an arena of 9223372036854775807 bytes, expected 0 to 2^49}}
fsdp.program @all role {} arena 9223372036854775807 {
}

// -----

// Elements of no bits, found by libFuzzer.
fsdp.step @evaluate evaluate {
  // expected-error @below {{has a result of type 'tensor<2xi0>', which has elements of no bits; use i1 or a wider type}}
  %x = fsdp.input "x" sample_dim 0 : tensor<2xi0>
}
