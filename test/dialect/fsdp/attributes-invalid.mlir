// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// Mesh C1: axis names are distinct words, sizes positive.

// expected-error @below {{mesh axis '' is not an identifier, expected a letter, then letters, digits and '_'}}
fsdp.mesh @mesh <[""=2]>

// -----

// expected-error @below {{mesh axis 'fsdp' appears twice; give each axis its own name}}
fsdp.mesh @mesh <["fsdp"=2, "fsdp"=4]>

// -----

// expected-error @below {{mesh axis 'fsdp' has size 0, expected at least 1}}
fsdp.mesh @mesh <["fsdp"=0]>

// -----

// expected-error @below {{mesh axis 'a' of size 4611686018427387904 gives the mesh too many ranks, expected at most 1048576}}
fsdp.mesh @mesh <["a"=4611686018427387904, "b"=4]>

// -----

// Mesh C2: devices are a permutation, and never the identity.

// expected-error @below {{mesh lists 2 devices, expected 4 (the product of the axis sizes)}}
fsdp.mesh @mesh <["fsdp"=4], devices = [1, 0]>

// -----

// expected-error @below {{mesh devices must be a permutation of 0 to 3}}
fsdp.mesh @mesh <["fsdp"=4], devices = [0, 1, 1, 3]>

// -----

// expected-error @below {{mesh devices are in the default order; leave them out}}
fsdp.mesh @mesh <["fsdp"=2], devices = [0, 1]>

// -----

// expected-error @below {{mesh has 9 axes, expected at most 8; leave out those of size 1}}
fsdp.mesh @mesh <["a"=1, "b"=1, "c"=1, "d"=1, "e"=1, "f"=1, "g"=1, "h"=1, "i"=1]>

// -----

// Mesh C3: an axis is there as a whole or in all of its parts.

// expected-error @below {{mesh axis 'a:(1)2' has size 4, expected 2 as in its name}}
fsdp.mesh @mesh <["a:(1)2"=4]>

// -----

// expected-error @below {{mesh axis 'a:(2)2' begins after 2 positions, expected 1: the parts of an axis are listed major to minor, without a gap}}
fsdp.mesh @mesh <["a:(2)2"=2]>

// -----

// expected-error @below {{mesh axis 'a:(4)2' begins after 4 positions, expected 2}}
fsdp.mesh @mesh <["a:(1)2"=2, "a:(4)2"=2]>

// -----

// expected-error @below {{mesh axis 'a:(2)2' begins after 2 positions, expected 4}}
fsdp.mesh @mesh <["a:(1)4"=4, "a:(2)2"=2]>

// -----

// expected-error @below {{mesh axis 'a:(2)2' is separated from the other parts of 'a'; list the parts of an axis one after the other, major to minor}}
fsdp.mesh @mesh <["a:(1)2"=2, "b"=2, "a:(2)2"=2]>

// -----

// expected-error @below {{mesh has axis 'a' both whole and in parts; use one of them}}
fsdp.mesh @mesh <["a"=4, "a:(1)2"=2]>

// -----

// No part: a size of 1, none before it, leading zeros.

// expected-error @below {{mesh axis 'a:(1)1' is not an identifier}}
fsdp.mesh @mesh <["a:(1)1"=1]>

// -----

// expected-error @below {{mesh axis 'a:(0)2' is not an identifier}}
fsdp.mesh @mesh <["a:(0)2"=2]>

// -----

// expected-error @below {{mesh axis 'a:(1)02' is not an identifier}}
fsdp.mesh @mesh <["a:(1)02"=2]>

// -----

// Sharding C1: no axis stands twice.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{axis 'fsdp' appears twice in a sharding; an axis splits at most one dimension}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp"}, {"fsdp"}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{'fsdp:(1)4' and 'fsdp:(2)2' in a sharding overlap; a part of an axis splits at most one dimension}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp:(1)4"}, {"fsdp:(2)2"}]> : tensor<8x4xf32>
}

// -----

fsdp.mesh @mesh <["fsdp"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  // expected-error @below {{'fsdp' and 'fsdp:(1)2' in a sharding overlap}}
  %y = fsdp.constraint %x <@mesh, [{"fsdp:(1)2"}, {"fsdp"}]> : tensor<8x4xf32>
}

// -----

// Sharding C2: unreduced is sorted.

fsdp.mesh @mesh <["a"=2, "b"=2]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  // expected-error @below {{'unreduced' axes must be in the order of their names}}
  %y = fsdp.constraint %x <@mesh, [{}], unreduced = {"b", "a"}> : tensor<8xf32>
}

// -----

// Layout C1 and C2.

// expected-error @below {{a replicated placement has no axes}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <replicated over ["fsdp"], gather = f32, reduce = f32, reshard = always>

// -----

// expected-error @below {{a 'flat' placement needs at least one axis; use replicated for none}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over [], gather = f32, reduce = f32, reshard = always>

// -----

// expected-error @below {{a 'dimension' placement got dimension -1, expected 0 or more}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <dimension -1 over ["fsdp"], gather = f32, reduce = f32, reshard = always>

// -----

// expected-error @below {{unknown storage 'sliced', expected flat, dimension or replicated}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <sliced over ["fsdp"], gather = f32, reduce = f32, reshard = always>

// -----

// expected-error @below {{unknown reshard 'sometimes', expected always, never or axes}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <replicated, gather = f32, reduce = f32, reshard = sometimes>

// -----

// expected-error @below {{gather, reduce and accumulate types must be float types: got}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <replicated, gather = i32, reduce = f32, reshard = always>

// -----

// Placement C1: parameter and gradient are replicated or stored as the state is.

// expected-error @below {{the gradient is stored as #fsdp.layout<flat over ["data"]>, expected replicated or #fsdp.layout<flat over ["fsdp"]> as for the state}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <parameter replicated, gradient flat over ["data"], state flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>

// -----

// expected-error @below {{the parameter is stored as #fsdp.layout<flat over ["fsdp"]>, expected replicated or #fsdp.layout<replicated> as for the state}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <parameter flat over ["fsdp"], gradient replicated, state replicated, gather = f32, reduce = f32, reshard = always>

// -----

// Placement C2: equal layouts are given once.

// expected-error @below {{parameter, gradient and state have the same layout; give it once}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <parameter replicated, gradient replicated, state replicated, gather = f32, reduce = f32, reshard = always>

// -----

// Placement C4: some, not all, of the first axes.

// expected-error @below {{reshard keeps the part over ["fsdp"] of a parameter that is #fsdp.layout<flat over ["node", "fsdp"]>, expected some but not all of its leading axes}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["node", "fsdp"], gather = f32, reduce = f32, reshard = axes ["fsdp"]>

// -----

// expected-error @below {{reshard keeps the part over ["fsdp"] of a parameter that is #fsdp.layout<flat over ["fsdp"]>}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = axes ["fsdp"]>

// -----

// expected-error @below {{reshard keeps the part over ["b"] of a parameter that is #fsdp.layout<dimension 0 over ["a", "b"]>}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <dimension 0 over ["a", "b"], gather = f32, reduce = f32, reshard = axes ["b"]>

// -----

// expected-error @below {{reshard = axes has 0 axes, expected at least one; use never for none}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = axes []>

// -----

// Placement C5: compute is no partial sum, and no axis is used twice.

// expected-error @below {{a parameter cannot be a partial sum: got compute = #fsdp.sharding<@mesh, [{}], unreduced = {"data"}>, expected a sharding without 'unreduced'}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <replicated, gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{}], unreduced = {"data"}>>

// -----

// expected-error @below {{axis "fsdp" splits the parameter both in compute and in storage; use it for one of them}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{"fsdp"}]>>

// -----

// Initializer C1.

// expected-error @below {{initial value is INF, expected a finite f32 number}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0x7FF0000000000000>

// -----

// expected-error @below {{'normal' initializer has a spread of -1.000000e+00, expected at least 0}}
fsdp.param @w : tensor<4xf32> unit "u" init <normal, -1.0>

// -----

// Optimizer C1.

// expected-error @below {{optimizer constant 'lr' is -1.000000e-01, expected a finite f32 number of at least 0}}
fsdp.step @train train optimizer <sgd, lr = -0.1> {
}

// -----

// expected-error @below {{optimizer constant 'beta1' is 1.000000e+00, expected an f32 number in [0, 1)}}
fsdp.step @train train optimizer <adam, lr = 0.1, beta1 = 1.0> {
}

// -----

// expected-error @below {{optimizer constant 'beta2' is 1.000000e+00, expected an f32 number in [0, 1)}}
fsdp.step @train train optimizer <adamw, lr = 0.1, beta2 = 1.0> {
}

// -----

// expected-error @below {{optimizer constant 'momentum' is 1.000000e+00, expected an f32 number in [0, 1)}}
fsdp.step @train train optimizer <sgd, lr = 0.1, momentum = 1.0> {
}

// -----

// expected-error @below {{optimizer constant 'eps' is -1.000000e+00, expected a finite f32 number of at least 0}}
fsdp.step @train train optimizer <adam, lr = 0.1, eps = -1.0> {
}

// -----

// expected-error @below {{optimizer constant 'warmup' is -3, expected at least 0}}
fsdp.step @train train optimizer <sgd, lr = 0.1, warmup = -3> {
}

// -----

// expected-error @below {{optimizer constant 'min_lr' is 2.000000e-01, expected at most 'lr', which is 1.000000e-01}}
fsdp.step @train train optimizer <sgd, lr = 0.1, min_lr = 0.2, schedule = linear> {
}

// -----

// expected-error @below {{optimizer constant 'decay_share' is 1.000000e+00, expected an f32 number in [0, 1)}}
fsdp.step @train train optimizer <sgd, lr = 0.1, decay_share = 1.0, schedule = wsd> {
}

// -----

// expected-error @below {{unknown optimizer 'nadam', expected sgd, adam}}
fsdp.step @train train optimizer <nadam, lr = 0.1> {
}

// -----

// expected-error @below {{unknown schedule 'stairs', expected constant, linear, cosine, inverse_sqrt or wsd}}
fsdp.step @train train optimizer <sgd, lr = 0.1, schedule = stairs> {
}

// -----

// expected-error @below {{unknown optimizer constant 'rate'}}
fsdp.step @train train optimizer <sgd, rate = 0.1> {
}

// -----

// expected-error @below {{optimizer 'lr_scale': got 'wte.*', expected PATTERN=X, X a finite f32 number >= 0}}
fsdp.step @train train optimizer <sgd, lr = 0.1, lr_scale = ["wte.*"]> {
}

// -----

// expected-error @below {{optimizer 'lr_scale': the factor of 'wte.*': got '-1', expected a finite f32 number >= 0}}
fsdp.step @train train optimizer <sgd, lr = 0.1, lr_scale = ["wte.*=-1"]> {
}

// -----

// expected-error-re @below {{optimizer constant 'momentum' applies to sgd{{(,? (and )?[a-z]+)*}} only, got optimizer adam; leave it out}}
fsdp.step @train train optimizer <adam, lr = 0.1, momentum = 0.9> {
}

// -----

// expected-error-re @below {{optimizer constant 'eps' applies to adam{{(,? (and )?[a-z]+)*}} only, got optimizer sgd; leave it out}}
fsdp.step @train train optimizer <sgd, lr = 0.1, eps = 0.1> {
}

// -----

// expected-error @below {{optimizer constant 'lr' is 1.000000e-46, which is 0 in f32; expected 0 or a number that f32 can represent}}
fsdp.step @train train optimizer <sgd, lr = 1.0e-46> {
}

// -----

// expected-error @below {{initial value is 1.000000e+39, expected a finite f32 number}}
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 1.0e39>

// -----

// expected-error @below {{initial value is 1.000000e-46, which is 0 in f32; expected 0 or a number that f32 can represent}}
fsdp.param @w : tensor<3xf32> unit "w" init <normal, 1.0e-46>
