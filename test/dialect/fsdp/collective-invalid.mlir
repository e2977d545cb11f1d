// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// C1 of every collective: axes are distinct axes of the mesh.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{runs over axis 'tensor', which the mesh lacks}}
    %m = fsdp.all_reduce sum %c over ["tensor"] : tensor<3xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{runs over axis 'fsdp' twice}}
    %m = fsdp.all_reduce max %c over ["fsdp", "fsdp"] : tensor<3xf32>
  }
}

// -----

// all_gather C2: the operand is one rank's part of the result.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<2xf32>
    // expected-error @below {{has 'tensor<2xf32>' as the part of 'tensor<10xf32>' over 4 ranks, expected 'tensor<3xf32>'}}
    %m = fsdp.all_gather %c dim 0 over ["fsdp"] : tensor<2xf32> -> tensor<10xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{works along dimension 1, expected a dimension below 1}}
    %m = fsdp.all_gather %c dim 1 over ["fsdp"] : tensor<3xf32> -> tensor<10xf32>
  }
}

// -----

// reduce_scatter C2: the result is one rank's part of the operand.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<10x2xf32>
    // expected-error @below {{has 'tensor<4x2xf32>' as the part of 'tensor<10x2xf32>' over 4 ranks, expected 'tensor<3x2xf32>'}}
    %m = fsdp.reduce_scatter %c dim 0 over ["fsdp"] : tensor<10x2xf32> -> tensor<4x2xf32>
  }
}

// -----

// all_slice C2: exactly the ceil-divided part, but of a flat value, whose shards may be longer.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<10xf32>
    %longer = fsdp.all_slice %c dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<4xf32>
    // expected-error @below {{has 'tensor<2xf32>' as the part of 'tensor<10xf32>' over 4 ranks, expected 'tensor<3xf32>'}}
    %m = fsdp.all_slice %c dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<2xf32>
  }
}
