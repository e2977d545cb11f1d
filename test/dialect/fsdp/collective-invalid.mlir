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
    %longer = fsdp.reduce_scatter %c dim 0 over ["fsdp"] : tensor<10x2xf32> -> tensor<4x2xf32>
    // expected-error @below {{has 'tensor<2x2xf32>' as the part of 'tensor<10x2xf32>' over 4 ranks, expected 'tensor<3x2xf32>'}}
    %m = fsdp.reduce_scatter %c dim 0 over ["fsdp"] : tensor<10x2xf32> -> tensor<2x2xf32>
  }
}

// -----

// all_slice C2: at least the ceil-divided part.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<10xf32>
    %longer = fsdp.all_slice %c dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<4xf32>
    // expected-error @below {{has 'tensor<2xf32>' as the part of 'tensor<10xf32>' over 4 ranks, expected 'tensor<3xf32>'}}
    %m = fsdp.all_slice %c dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<2xf32>
  }
}

// -----

// all_to_all C2: dimensions of the operand.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3x6xf32>
    // expected-error @below {{works along dimension 2, expected a dimension below 2}}
    %m = fsdp.all_to_all %c split 2 concat 0 over ["fsdp"] : tensor<3x6xf32> -> tensor<10x2xf32>
  }
}

// -----

// all_to_all C2: other dimensions are equal.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3x6x5xf32>
    // expected-error @below {{produces 'tensor<10x2x4xf32>' from 'tensor<3x6x5xf32>', expected 'tensor<10x2x5xf32>'}}
    %m = fsdp.all_to_all %c split 1 concat 0 over ["fsdp"] : tensor<3x6x5xf32> -> tensor<10x2x4xf32>
  }
}

// -----

// all_to_all C3: the ceil-divided part of what is split.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3x6xf32>
    // expected-error @below {{produces 'tensor<10x3xf32>' from 'tensor<3x6xf32>', expected 'tensor<10x2xf32>'}}
    %m = fsdp.all_to_all %c split 1 concat 0 over ["fsdp"] : tensor<3x6xf32> -> tensor<10x3xf32>
  }
}

// -----

// all_to_all C3: of what is joined.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<4x6xf32>
    // expected-error @below {{has 4 elements along dimension 0, expected 3 (10 over 4 ranks)}}
    %m = fsdp.all_to_all %c split 1 concat 0 over ["fsdp"] : tensor<4x6xf32> -> tensor<10x2xf32>
  }
}

// -----

// all_to_all along one dimension: parts of any size, other dimensions equal.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<4x6xf32>
    // expected-error @below {{produces 'tensor<3x2xf32>' from 'tensor<4x6xf32>', expected 'tensor<3x6xf32>'}}
    %m = fsdp.all_to_all %c split 0 concat 0 over ["fsdp"] : tensor<4x6xf32> -> tensor<3x2xf32>
  }
}

// -----

// collective_permute C2: a source for each rank.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{has 2 sources, expected one for each of 4 ranks; -1 means none}}
    %m = fsdp.collective_permute %c from [1, 0] over ["fsdp"] : tensor<3xf32>
  }
}

// -----

// collective_permute C2: sources are ranks.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{receives from rank 4, expected -1 or a rank below 4}}
    %m = fsdp.collective_permute %c from [1, 0, 4, 2] over ["fsdp"] : tensor<3xf32>
  }
}

// -----

// collective_permute C3: no rank twice.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{receives from rank 1 twice, expected each rank at most once; use 'fsdp.broadcast'}}
    %m = fsdp.collective_permute %c from [1, -1, -1, 1] over ["fsdp"] : tensor<3xf32>
  }
}

// -----

// broadcast C2: a rank of the group.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{receives from rank 4, expected a rank below 4}}
    %m = fsdp.broadcast %c from 4 over ["fsdp"] : tensor<3xf32>
  }
}
