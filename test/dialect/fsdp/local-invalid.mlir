// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// load C1: the storage and the state exist and have the type.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{names 'u', which is not a storage}}
    %p = fsdp.load @u "parameter" : tensor<8xf32>
  }
}

// -----

fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<8xf32> replicated over [] states ["momentum"] members [#fsdp.member<@w at 0>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{names 'exp_avg', which storage 'u' does not keep; it keeps parameter, momentum}}
    %p = fsdp.load @u "exp_avg" : tensor<8xf32>
  }
}

// -----

fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{has type 'tensor<4xf32>', expected 'tensor<8xf32>', the type of 'parameter' of storage 'u'}}
    %p = fsdp.load @u "parameter" : tensor<4xf32>
  }
}

// -----

// The copy holds the parameter where it has its type; else there is a shard too.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<12xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<8xf32> flat over ["fsdp"] copy tensor<12xf32> states [] members [#fsdp.member<@w at 0>]
fsdp.param @x : tensor<12xf32> unit "u" init <constant, 0.0>
fsdp.storage @v : tensor<8xf32> flat over ["fsdp"] copy tensor<12xbf16> states [] members [#fsdp.member<@x at 0>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %m = fsdp.load @v "parameter" : tensor<8xf32>
    %n = fsdp.load @v "copy" : tensor<12xbf16>
    // expected-error @below {{names 'parameter', which storage 'u' does not keep; it keeps copy}}
    %p = fsdp.load @u "parameter" : tensor<8xf32>
  }
}

// -----

// optimizer_step C2: it works on the shard of its storage.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<12xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<8xf32> flat over ["fsdp"] copy tensor<12xf32> states [] members [#fsdp.member<@w at 0>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %p = fsdp.load @u "copy" : tensor<12xf32>
    %g = arith.constant dense<1.0> : tensor<12xf32>
    %scale = arith.constant dense<1.0> : tensor<f32>
    %ok = arith.constant dense<true> : tensor<i1>
    %lr = fsdp.learning_rate <sgd, lr = 0.1>
    // expected-error @below {{has type 'tensor<12xf32>', expected 'tensor<8xf32>', the shard of storage 'u'}}
    %n = fsdp.optimizer_step <sgd, lr = 0.1> @u %p, %g states() lr %lr scale %scale if %ok : tensor<12xf32> states 0
  }
}

// -----

// store C1: as load.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{names 'u', which is not a storage}}
    fsdp.store %c, @u "parameter" : tensor<8xf32>
  }
}

// -----

// view C1: the range lies inside a flat value.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{covers 6 elements from 4, expected a range within 0 to 8}}
    %v = fsdp.view %c at 4 : tensor<8xf32> -> tensor<2x3xf32>
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<2x4xf32>
    // expected-error @below {{takes a flat tensor of 'f32', got 'tensor<2x4xf32>'}}
    %v = fsdp.view %c at 0 : tensor<2x4xf32> -> tensor<2x3xf32>
  }
}

// -----

// flatten C1: operands fit, one element type, a result of rank one.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<2x4xf32>
    // expected-error @below {{has 8 elements, expected at most 7}}
    %v = fsdp.flatten %c : (tensor<2x4xf32>) -> tensor<7xf32>
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<2x4xf32>
    // expected-error @below {{has result 'tensor<2x4xf32>', expected rank 1}}
    %v = fsdp.flatten %c : (tensor<2x4xf32>) -> tensor<2x4xf32>
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<2x4xf32>
    // expected-error @below {{has operand 'tensor<2x4xf32>', expected element type 'f64'}}
    %v = fsdp.flatten %c : (tensor<2x4xf32>) -> tensor<8xf64>
  }
}

// -----

// mask_padding C1: the dimension exists and is this rank's part.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{masks dimension 1, expected a dimension below 1}}
    %m = fsdp.mask_padding %c dim 1 of 10 over ["fsdp"] fill 0.0 : tensor<3xf32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1.0> : tensor<3xf32>
    // expected-error @below {{has 3 elements along dimension 0, expected at least 4 (13 over 4 ranks)}}
    %m = fsdp.mask_padding %c dim 0 of 13 over ["fsdp"] fill -inf : tensor<3xf32>
  }
}

// -----

// shard_indices, shard_size and shard_offset C1: a dimension of a size, distinct axes of the mesh.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1> : tensor<3xi32>
    // expected-error @below {{is for a dimension of 0 elements, expected 1 to 2^48}}
    %m = fsdp.shard_indices %c of 0 over ["fsdp"] : tensor<3xi32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1> : tensor<3xi32>
    // expected-error @below {{is split over axis 'tensor', which the mesh lacks}}
    %m = fsdp.shard_indices %c of 10 over ["tensor"] : tensor<3xi32>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{is for a dimension of 281474976710657 elements, expected 1 to 2^48}}
    %n = fsdp.shard_size of 281474976710657 over ["fsdp"]
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{is split over axis 'fsdp' twice}}
    %n = fsdp.shard_size of 10 over ["fsdp", "fsdp"]
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{is for a dimension of 0 elements, expected 1 to 2^48}}
    %n = fsdp.shard_offset of 0 over ["fsdp"]
  }
}

// -----

// shard_indices, shard_size and shard_offset C2: a part is given where the dimension is padded.

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{is for parts of 3 elements, expected 4 to 2^48; leave 'part' out where a dimension is not padded}}
    %n = fsdp.shard_offset of 10 over ["fsdp"] part 3
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{is for parts of 3 elements, expected 4 to 2^48; leave 'part' out where a dimension is not padded}}
    %n = fsdp.shard_size of 10 over ["fsdp"] part 3
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %c = arith.constant dense<1> : tensor<3xi32>
    // expected-error @below {{is for parts of 281474976710657 elements, expected 4 to 2^48}}
    %m = fsdp.shard_indices %c of 10 over ["fsdp"] part 281474976710657 : tensor<3xi32>
  }
}

// -----

// clip_scale C1: the optimizer clips.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %norm = arith.constant dense<1.0> : tensor<f32>
    // expected-error @below {{requires an optimizer that clips, got clip = 0}}
    %scale = fsdp.clip_scale <sgd, lr = 0.1> %norm
  }
}

// -----

// optimizer_step C1: the states that the optimizer names, all of the shard's type.

fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %p = fsdp.load @u "parameter" : tensor<8xf32>
    %r = arith.constant dense<1.0> : tensor<f32>
    %ok = arith.constant dense<true> : tensor<i1>
    // expected-error @below {{has 0 states, expected 2 (exp_avg, exp_avg_sq)}}
    %n = fsdp.optimizer_step <adam, lr = 0.1> @u %p, %p states() lr %r scale %r if %ok : tensor<8xf32> states 0
  }
}

// -----

fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %p = fsdp.load @u "parameter" : tensor<8xf32>
    %g = arith.constant dense<1.0> : tensor<4xf32>
    %r = arith.constant dense<1.0> : tensor<f32>
    %ok = arith.constant dense<true> : tensor<i1>
    // expected-error @below {{requires gradient, states and results of the parameter's type 'tensor<8xf32>'}}
    %n = "fsdp.optimizer_step"(%p, %g, %r, %r, %ok) {optimizer = #fsdp.optimizer<sgd, lr = 0.1>, storage = @u} : (tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<8xf32>
  }
}

// -----

// optimizer_step C2: the storage exists and has the type.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %p = arith.constant dense<1.0> : tensor<8xf32>
    %r = arith.constant dense<1.0> : tensor<f32>
    %ok = arith.constant dense<true> : tensor<i1>
    // expected-error @below {{names 'u', which is not a storage}}
    %n = fsdp.optimizer_step <sgd, lr = 0.1> @u %p, %p states() lr %r scale %r if %ok : tensor<8xf32> states 0
  }
}

// -----

// carry_load C1 and carry_store C1: the tensor exists and has the type.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{names 'sum', expected an 'fsdp.carried'}}
    %sum = fsdp.carry_load @sum : tensor<8xf32>
  }
}

// -----

fsdp.carried @sum : tensor<8xf32>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %x = arith.constant dense<1.0> : tensor<4xf32>
    // expected-error @below {{has type 'tensor<4xf32>', expected 'tensor<8xf32>', the type of 'sum'}}
    fsdp.carry_store %x, @sum : tensor<4xf32>
  }
}

// -----

// carried C1: the storage exists.

// expected-error @below {{names 'u', which is not a storage}}
fsdp.carried @sum : tensor<8xf32> of @u

// -----

// Which of two storages has the value of a parameter would be undecided.
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]
// expected-error @below {{has member 'w', which storage 'u' has too; give a parameter one storage}}
fsdp.storage @v : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
fsdp.program @p role {} {
}

// -----

// square_sum C1: 1 to 24 shards.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{has 0 shards, expected 1 to 24; add up the results of several}}
    %n = "fsdp.square_sum"() : () -> tensor<f64>
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %g = arith.constant dense<1.0> : tensor<8xf32>
    // expected-error @below {{has 25 shards, expected 1 to 24; add up the results of several}}
    %n = fsdp.square_sum %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g, %g : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
