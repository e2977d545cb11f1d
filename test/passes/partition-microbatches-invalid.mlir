// What needs several microbatches at once is refused.
// RUN: fsdp-opt --split-input-file --verify-diagnostics --fsdp-to-local=accumulate=2 %s
// RUN: sed 's/"data"/"node"/g' %s | not fsdp-opt --split-input-file --fsdp-to-local="accumulate=2 batch-axes=node" 2>&1 | FileCheck %s
// CHECK: error: a manual region over fsdp takes the samples of 'fsdp.input' split over fsdp, got them over node+fsdp: they would change ranks

// Batch statistics: backward of the first microbatch needs the mean over all.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
  %mean = nn.reduce mean "b o -> o" %x : tensor<4x3xf32> -> tensor<3xf32>
  %means = nn.repeat "o -> b o" %mean : tensor<3xf32> -> tensor<4x3xf32>
  // expected-error @below {{'arith.subf' needs a value, which depends on the samples of the whole batch, in each microbatch; train without gradient accumulation}}
  %centered = arith.subf %x, %means : tensor<4x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  %scales = nn.repeat "o -> b o" %scale : tensor<3xf32> -> tensor<4x3xf32>
  %y = arith.mulf %centered, %scales : tensor<4x3xf32>
  %square = arith.mulf %y, %y : tensor<4x3xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<4x3xf32> -> tensor<f64>
  %count = arith.constant dense<12.0> : tensor<f64>
  // expected-warning @below {{evaluation uses full batches only}}
  fsdp.loss %sum over %count
}

// -----

// expected-error @below {{the mesh has an axis 'microbatch', which is reserved for microbatches; rename it}}
fsdp.mesh @mesh <["fsdp"=1, "microbatch"=2]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0> placement <flat over ["microbatch"], gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  %scales = nn.repeat "o -> b o" %scale : tensor<3xf32> -> tensor<4x3xf32>
  %y = arith.mulf %x, %scales : tensor<4x3xf32>
  %sum = nn.reduce sum "b o ->" %y : tensor<4x3xf32> -> tensor<f64>
  %count = arith.constant dense<12.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// A softmax over the samples.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @scale : tensor<4xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4xf32>
  %scale = fsdp.read @scale : tensor<4xf32>
  %y = nn.einsum "b,a->ab" %x, %scale : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  // expected-warning @below {{evaluation uses full batches only}}
  // expected-error @below {{'nn.softmax' needs all samples of}}
  %s = nn.softmax %y : tensor<4x4xf32>
  %sum = nn.reduce sum "a b ->" %s : tensor<4x4xf32> -> tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// A constant with a number for each sample.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  %each = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // expected-error @below {{'nn.einsum' takes an element for each sample from 'arith.constant', which is the same in each microbatch; make it an input of the step, or train without gradient accumulation}}
  %y = nn.einsum "bo,b->bo" %x, %each : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  %z = nn.einsum "bo,o->bo" %y, %scale : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %sum = nn.reduce sum "b o ->" %z : tensor<4x3xf32> -> tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// Samples merged with another dimension, and not first.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x2x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  // expected-error @below {{'nn.rearrange' needs all samples of 'fsdp.input' at once, but with gradient accumulation a step computes them in 2 microbatches, one after another; put samples first where dimensions are merged and use a batch that ranks and microbatches divide, or train without accumulation}}
  %rows = nn.rearrange "b s o -> (s b) o" %x : tensor<4x2x3xf32> -> tensor<8x3xf32>
  %z = nn.einsum "ro,o->ro" %rows, %scale : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8x3xf32>
  // expected-warning @below {{evaluation uses full batches only}}
  %sum = nn.reduce sum "r o ->" %z : tensor<8x3xf32> -> tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// More microbatches than samples.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  // expected-warning @below {{a rank has 1 of the 2 samples of a step, in 2 microbatches, some of which get only padding; leave out --accumulate, or use a batch of 4 samples or more}}
  %x = fsdp.input "x" sample_dim 0 : tensor<2x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  %y = nn.einsum "bi,i->b" %x, %scale : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  %sum = nn.reduce sum "b ->" %y : tensor<2xf32> -> tensor<f64>
  %count = arith.constant dense<2.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// Ranks exchange the samples of a microbatch only where all have as many.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<7x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  // expected-warning @below {{'nn.einsum' needs all of 'fsdp.input' on every rank}}
  // expected-error @below {{'nn.einsum' needs all samples of 'fsdp.input' at once, but with gradient accumulation a step computes them in 2 microbatches, one after another; put samples first where dimensions are merged and use a batch that ranks and microbatches divide, or train without accumulation}}
  %y = nn.einsum "bi,i->bi" %x, %scale : (tensor<7x3xf32>, tensor<3xf32>) -> tensor<7x3xf32>
  %whole = fsdp.constraint %y <@mesh, [{}, {}]> : tensor<7x3xf32>
  %sum = nn.reduce sum "b i ->" %whole : tensor<7x3xf32> -> tensor<f64>
  %count = arith.constant dense<7.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// And where microbatches are of whole samples: of 8 rows that are 2 samples, each of 2 microbatches on 2 ranks has half a sample a rank.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @scale : tensor<3xf32> unit "layer" init <constant, 1.0>
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x3xf32>
  %scale = fsdp.read @scale : tensor<3xf32>
  // expected-warning @below {{'nn.einsum' needs all of 'fsdp.input' on every rank}}
  // expected-error @below {{'nn.einsum' needs all samples of 'fsdp.input' at once}}
  %y = nn.einsum "bi,i->bi" %x, %scale : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8x3xf32>
  %whole = fsdp.constraint %y <@mesh, [{}, {}]> : tensor<8x3xf32>
  %samples = nn.rearrange "(b s) i -> b s i" %whole {s = 4} : tensor<8x3xf32> -> tensor<2x4x3xf32>
  // expected-warning @below {{evaluation uses full batches only}}
  %means = nn.reduce mean "b s i -> b i" %samples : tensor<2x4x3xf32> -> tensor<2x3xf32>
  %square = arith.mulf %means, %means : tensor<2x3xf32>
  %sum = nn.reduce sum "b i ->" %square : tensor<2x3xf32> -> tensor<f64>
  %count = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %count
}

// -----

// A manual region that takes samples on other ranks than have them, where microbatches of ranks are not of whole samples: 12 in 8 parts.
fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.param @w : tensor<4x4xf32> unit "w" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  // expected-error @below {{a manual region over fsdp takes the samples of 'fsdp.input' split over fsdp, got them over data+fsdp: they would change ranks, but with gradient accumulation a step computes them in 2 microbatches, one after another; write a region over data+fsdp that splits samples in this order, or train without accumulation}}
  %x = fsdp.input "x" sample_dim 0 : tensor<12x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  %y = fsdp.manual(%x, %w) over ["fsdp"] in [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>, #fsdp.sharding<@mesh, [{}, {}]>]
      out [#fsdp.sharding<@mesh, [{"fsdp"}, {}]>] : (tensor<12x4xf32>, tensor<4x4xf32>) -> tensor<12x4xf32> {
  ^bb0(%own: tensor<6x4xf32>, %whole: tensor<4x4xf32>):
    %p = nn.einsum "bi,io->bo" %own, %whole : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
    fsdp.yield %p : tensor<6x4xf32>
  }
  %sum = nn.reduce sum "b o ->" %y : tensor<12x4xf32> -> tensor<f64>
  %weight = arith.constant dense<12.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
