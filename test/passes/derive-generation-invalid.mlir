// RUN: fsdp-opt %s --fsdp-derive-generation --split-input-file --verify-diagnostics

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    // expected-error @below {{combines the tokens of different positions, which --generate does not support; compile this model without --generate}}
    %y = nn.scan_sum "b s d" along "s" %x : tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %m = arith.constant dense<1.0> : tensor<6x6xf32>
    // expected-error @below {{combines samples, which --generate does not support; compile this model without --generate}}
    %y = nn.einsum "ab,bsd->asd" %m, %x : (tensor<6x6xf32>, tensor<6x8x4xf32>) -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> b s h d" %x : tensor<6x8x4xf32> -> tensor<6x8x1x4xf32>
    // expected-error @below {{lets tokens attend to later ones, which --generate does not support; compile this model without --generate}}
    %out, %lse = nn.attention "b t h d" %q, %q, %q scale 0.5
        : (tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>) -> (tensor<6x8x1x4xf32>, tensor<6x1x8xf32>)
    %y = nn.rearrange "b s h d -> b s (h d)" %out : tensor<6x8x1x4xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> s h b d" %x : tensor<6x8x4xf32> -> tensor<8x1x6x4xf32>
    // expected-error @below {{attends to something other than the tokens of the sample, which --generate does not support; compile this model without --generate}}
    %out, %lse = nn.attention "b h t d" %q, %q, %q scale 0.5 causal
        : (tensor<8x1x6x4xf32>, tensor<8x1x6x4xf32>, tensor<8x1x6x4xf32>) -> (tensor<8x1x6x4xf32>, tensor<8x1x6xf32>)
    %y = nn.rearrange "s h b d -> b s (h d)" %out : tensor<8x1x6x4xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> b s h d" %x : tensor<6x8x4xf32> -> tensor<6x8x1x4xf32>
    %k = arith.constant dense<1.0> : tensor<6x8x1x4xf32>
    // expected-error @below {{attends to something other than the tokens of the sample, which --generate does not support; compile this model without --generate}}
    %out, %lse = nn.attention "b t h d" %q, %k, %q scale 0.5 causal
        : (tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>) -> (tensor<6x8x1x4xf32>, tensor<6x1x8xf32>)
    %y = nn.rearrange "b s h d -> b s (h d)" %out : tensor<6x8x1x4xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> b s h d" %x : tensor<6x8x4xf32> -> tensor<6x8x1x4xf32>
    // expected-error @below {{has a second result, which is used, which --generate does not support; compile this model without --generate}}
    %out, %lse = nn.attention "b t h d" %q, %q, %q scale 0.5 causal
        : (tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>) -> (tensor<6x8x1x4xf32>, tensor<6x1x8xf32>)
    %a = nn.rearrange "b s h d -> b s (h d)" %out : tensor<6x8x1x4xf32> -> tensor<6x8x4xf32>
    %r = nn.rearrange "b 1 s -> b s" %lse : tensor<6x1x8xf32> -> tensor<6x8xf32>
    %l = nn.repeat "b s -> b s d" %r : tensor<6x8xf32> -> tensor<6x8x4xf32>
    %y = arith.addf %a, %l : tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    // expected-error @below {{is an input beside the tokens, which --generate does not support; compile this model without --generate}}
    %other = fsdp.input "other" sample_dim 0 : tensor<6x8x4xf32>
    %y = arith.addf %x, %other : tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.param @by_sample : tensor<6x8x4xf32> unit "p" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %p = fsdp.read @by_sample : tensor<6x8x4xf32>
    // expected-error @below {{takes a value that differs from sample to sample or from position to position and is not a table of positions, which --generate does not support; compile this model without --generate}}
    %y = arith.addf %x, %p : tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %r = nn.rearrange "b s d -> s b d" %x : tensor<6x8x4xf32> -> tensor<8x6x4xf32>
    // expected-error @below {{turns positions of something other than samples, which --generate does not support; compile this model without --generate}}
    %t = nn.rope %r dim 0 theta 1.0e+04 : tensor<8x6x4xf32>
    %y = nn.rearrange "s b d -> b s d" %t : tensor<8x6x4xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %f = nn.rearrange "b s d -> (b s d)" %x : tensor<6x8x4xf32> -> tensor<192xf32>
    // expected-error @below {{mixes samples or positions with other dimensions, which --generate does not support; compile this model without --generate}}
    %g = nn.rearrange "(a c e) -> a c e" %f : tensor<192xf32> -> tensor<4x16x3xf32>
    %i = nn.rearrange "a c e -> (a c e)" %g : tensor<4x16x3xf32> -> tensor<192xf32>
    %y = nn.rearrange "(b s d) -> b s d" %i : tensor<192xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

// expected-error @below {{has 0 steps that evaluate, expected one, from which --generate is derived}}
module {
}

// -----

fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
// expected-error @below {{has 0 inputs of tokens, expected one for --generate}}
fsdp.step @evaluate evaluate {
  %w = fsdp.read @w : tensor<3xf32>
  %sum = nn.reduce sum "a ->" %w : tensor<3xf32> -> tensor<f64>
  %weight = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

fsdp.param @w : tensor<5x3xf32> unit "w" init <constant, 0.0>
// expected-error @below {{computes no single loss from the scores of a vocabulary for each token, which --generate needs}}
fsdp.step @evaluate evaluate {
  %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
  %w = fsdp.read @w : tensor<5x3xf32>
  %x = nn.embedding %w, %tokens : tensor<5x3xf32>, tensor<6x8xi32> -> tensor<6x8x3xf32>
  %sum = nn.reduce sum "a b c ->" %x : tensor<6x8x3xf32> -> tensor<f64>
  %weight = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %weight
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  // expected-error @below {{has the name of something that --generate adds; rename it}}
  fsdp.param @decode : tensor<3xf32> unit "d" init <constant, 0.0>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %y = arith.addf %x, %x : tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  // expected-error @below {{has the name of something that --generate adds; rename it}}
  fsdp.param @decode.logits : tensor<3xf32> unit "d" init <constant, 0.0>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %y = arith.addf %x, %x : tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

// Where some tokens were last is no position in a document.
module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.param @wpe : tensor<9x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    // expected-error @below {{combines the tokens of different positions, which --generate does not support; compile this model without --generate}}
    %at = nn.positions_since [3] in %tokens : tensor<6x8xi32> -> tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %wpe = fsdp.read @wpe : tensor<9x4xf32>
    %x = nn.embedding %wpe, %at : tensor<9x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %x, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}

// -----

module {
  fsdp.param @wte : tensor<5x4xf32> unit "wte" init <normal, 0.02>
  fsdp.step @evaluate evaluate {
    %tokens = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 5 : i64} : tensor<6x8xi32>
    %targets = fsdp.input "targets" sample_dim 0 {fsdp.targets = 5 : i64} : tensor<6x8xi32>
    %wte = fsdp.read @wte : tensor<5x4xf32>
    %x = nn.embedding %wte, %tokens : tensor<5x4xf32>, tensor<6x8xi32> -> tensor<6x8x4xf32>
    %q = nn.rearrange "b s (h d) -> b s h d" %x : tensor<6x8x4xf32> -> tensor<6x8x1x4xf32>
    %bias = arith.constant dense<1.0> : tensor<1x8x8xf32>
    // expected-error @below {{adds a bias to its scores, which --generate does not support; compile this model without --generate}}
    %out, %lse = nn.attention "b t h d" %q, %q, %q, %bias scale 0.5 causal bias
        : (tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<6x8x1x4xf32>, tensor<1x8x8xf32>) -> (tensor<6x8x1x4xf32>, tensor<6x1x8xf32>)
    %y = nn.rearrange "b s h d -> b s (h d)" %out : tensor<6x8x1x4xf32> -> tensor<6x8x4xf32>
    %scores = nn.einsum "bsd,vd->bsv" %y, %wte : (tensor<6x8x4xf32>, tensor<5x4xf32>) -> tensor<6x8x5xf32>
    %loss, %logs = nn.cross_entropy %scores, %targets : tensor<6x8x5xf32>, tensor<6x8xi32> -> tensor<6x8xf32>, tensor<6x8xf32>
    %total = nn.reduce sum "b s ->" %loss : tensor<6x8xf32> -> tensor<f64>
    %count = arith.constant dense<48.0> : tensor<f64>
    fsdp.loss %total over %count
  }
}
