// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// C1: axes are distinct axes of the mesh.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{runs over axis 'tensor', which the mesh lacks}}
    fsdp.send %c offset 1 over ["tensor"] : tensor<3xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{runs over no axes, expected at least one; use its operand instead}}
    %y = fsdp.receive offset 1 over [] : tensor<3xf32>
  }
}

// -----

// C2: the offset of another rank of the group.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{has offset 0, which is the rank itself; use the value directly}}
    fsdp.send %c offset 0 over ["fsdp"] : tensor<3xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{has offset -4 over 4 ranks, expected -3 to 3}}
    %y = fsdp.receive offset -4 over ["fsdp"] : tensor<3xf32>
  }
}

// -----

// An axis of one rank has nobody to meet, whatever the offset.

fsdp.mesh @mesh <["context"=1]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{has offset 1 over 1 rank, but a transfer over a single rank has no peer, expected axes with at least 2 ranks; remove the op}}
    fsdp.send %c offset 1 over ["context"] : tensor<3xf32>
  }
}

// -----

fsdp.mesh @mesh <["context"=1]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{has offset -1 over 1 rank, but a transfer over a single rank has no peer, expected axes with at least 2 ranks; use zeros, the value it would receive}}
    %y = fsdp.receive offset -1 over ["context"] : tensor<3xf32>
  }
}

// -----

// C3: some rank of the program has such a peer.

fsdp.mesh @mesh <["pipeline"=3, "fsdp"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{has offset -1, but no rank of program 'first' has a peer at that offset among the 3 ranks of its group; remove the op, or use the offset of a rank that exists}}
    %y = fsdp.receive offset -1 over ["pipeline"] : tensor<3xf32>
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @s train next [@s] {
  }
}
fsdp.program @third role {pipeline = 2 : i64} {
  fsdp.segment @s train next [@s] {
  }
}

// -----

// Of several axes, those of the role fix a part of the place: from place 2 or 3 of 4 nobody stands 2 further.

fsdp.mesh @mesh <["pipeline"=2, "fsdp"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @s train next [@s] {
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{has offset 2, but no rank of program 'second' has a peer at that offset among the 4 ranks of its group}}
    fsdp.send %c offset 2 over ["pipeline", "fsdp"] : tensor<3xf32>
  }
}

// -----

// The number of a message.

fsdp.mesh @mesh <["context"=2]>
fsdp.program @all role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{attribute 'message' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
    fsdp.send %c offset 1 over ["context"] message -1 : tensor<3xf32>
  }
}
