// RUN: fsdp-opt %s --split-input-file --fsdp-chunk-loss=chunks=2 --verify-diagnostics
// RUN: bash -c 'fsdp-opt %s --split-input-file --fsdp-chunk-loss=chunks=0 2>&1; true' | FileCheck %s

// CHECK: for the --chunks option: got '0', expected an integer from 1 to 9223372036854775807

// expected-error @below {{--loss-chunks=2 has no effect: no op computes a loss from logits; leave it out}}
module {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
      %sum = nn.reduce sum "b i ->" %x : tensor<4x3xf32> -> tensor<f32>
      fsdp.output "loss" %sum
    }
  }
}

// -----

// A rank has fewer rows than chunks.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 : tensor<1x3xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<1xi32>
    // expected-error @below {{the loss of 1 rows of logits cannot be computed in 2 chunks, expected a dimension of at least that size whose rows are independent; leave out --loss-chunks or give a smaller number}}
    %logits = arith.negf %x : tensor<1x3xf32>
    %loss, %lse = nn.cross_entropy %logits, %label : tensor<1x3xf32>, tensor<1xi32> -> tensor<1xf32>, tensor<1xf32>
    %sum = nn.reduce sum "b ->" %loss : tensor<1xf32> -> tensor<f32>
    fsdp.output "loss" %sum
  }
}

// -----

// The sizes are those of the whole batch, of which a rank has one sample.
fsdp.mesh @mesh <["fsdp"=16]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<1x1x3xf32>
    %label = fsdp.input "label" sample_dim 0 shard_of 10 over ["fsdp"] : tensor<1x1xi32>
    // expected-error @below {{the loss of 10x1 rows of logits cannot be computed in 2 chunks: a rank has 1x1 of them at once, expected a dimension of at least that size whose rows are independent; leave out --loss-chunks or give a smaller number}}
    %logits = arith.negf %x : tensor<1x1x3xf32>
    %loss, %lse = nn.cross_entropy %logits, %label : tensor<1x1x3xf32>, tensor<1x1xi32> -> tensor<1x1xf32>, tensor<1x1xf32>
    %sum = nn.reduce sum "b t ->" %loss : tensor<1x1xf32> -> tensor<f32>
    fsdp.output "loss" %sum
  }
}

// -----

// The gradient of a row is scaled by the loss of all rows.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    // expected-error @below {{dimension 0: 'nn.repeat' makes the gradient of a row depend on all rows}}
    %logits = arith.negf %x : tensor<4x3xf32>
    %loss, %lse = nn.cross_entropy %logits, %label : tensor<4x3xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %sum = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f32>
    %d = nn.repeat "-> b" %sum : tensor<f32> -> tensor<4xf32>
    %dlogits = nn.cross_entropy_grad %logits, %label, %lse, %d : tensor<4x3xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %dx = arith.negf %dlogits : tensor<4x3xf32>
    %total = nn.reduce sum "b i ->" %dx : tensor<4x3xf32> -> tensor<f32>
    fsdp.output "loss" %total
  }
}

// -----

// Rows are normalized over each other.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    // expected-error @below {{dimension 0: 'nn.reduce' needs all rows at once}}
    %logits = arith.negf %x : tensor<4x3xf32>
    %loss, %lse = nn.cross_entropy %logits, %label : tensor<4x3xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %most = nn.reduce max "b i -> i" %logits : tensor<4x3xf32> -> tensor<3xf32>
    %sum = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f32>
    %other = nn.reduce sum "i ->" %most : tensor<3xf32> -> tensor<f32>
    fsdp.output "loss" %sum
    fsdp.output "most" %other
  }
}

// -----

// All of the logits are asked for.
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    // expected-error @below {{dimension 0: 'fsdp.all_gather' needs all of the logits}}
    %logits = arith.negf %x : tensor<4x3xf32>
    %loss, %lse = nn.cross_entropy %logits, %label : tensor<4x3xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %everywhere = fsdp.all_gather %logits dim 1 over ["fsdp"] : tensor<4x3xf32> -> tensor<4x3xf32>
    %sum = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f32>
    %other = nn.reduce sum "b i ->" %everywhere : tensor<4x3xf32> -> tensor<f32>
    fsdp.output "loss" %sum
    fsdp.output "most" %other
  }
}
