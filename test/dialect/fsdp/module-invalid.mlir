// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// param C2: the file shape is a view of the type.

// expected-error @below {{'file_shape' has 12 elements, expected 24 as in the type}}
fsdp.param @w : tensor<2x3x4xf32> unit "u" init <constant, 0.0> file_shape [2, 6]

// -----

// param C3: the placement names dimensions and axes that exist.

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{placement names axis 'tensor', which the mesh lacks}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["tensor"], gather = f32, reduce = f32, reshard = always>

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{placement splits dimension 1, expected a dimension below 1}}
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0> placement <dimension 1 over ["fsdp"], gather = f32, reduce = f32, reshard = always>

// -----

// param C4: the flat placements of one unit are equal.

fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
// expected-error @below {{and 'b' share the flat unit 'u' but have different placements}}
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// expected-note @below {{the other parameter is here}}
fsdp.param @b : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["data"], gather = f32, reduce = f32, reshard = always>

// -----

// param C5: the types of the wire are the element type or narrower.

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{placement gathers 'f64', expected 'f32' or a narrower float type}}
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f64, reduce = f32, reshard = always>

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{placement reduces 'f16', expected 'bf16' or a narrower float type}}
fsdp.param @a : tensor<4xbf16> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = bf16, reduce = f16, reshard = always>

// -----

// param C5: gradients are added up in a type between that of the wire and the parameter's.

fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
// expected-error @below {{placement accumulates 'f32', expected a type narrower than 'f32' and 'bf16' or wider; leave it out for 'f32'}}
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = bf16, accumulate = f32, reshard = always>

// -----

// param C7: compute is a sharding of the type, over the mesh.

fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
// expected-error @below {{placement computes on mesh 'other', expected 'mesh', the mesh of the module}}
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@other, [{}]>>

// -----

fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
// expected-error @below {{placement splits 2 dimensions in compute, expected 1 as in the type}}
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{}, {}]>>

// -----

fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
// expected-error @below {{placement computes over axis 'rows', which the mesh lacks}}
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{"rows"}]>>

// -----

// step C1: the optimizer stands with `train` only.

// expected-error @below {{of kind 'train' needs an optimizer}}
fsdp.step @train train {
}

// -----

// expected-error @below {{of kind 'evaluate' takes no optimizer}}
fsdp.step @eval evaluate optimizer <sgd, lr = 0.1> {
}

// -----

// step C4: patterns of the optimizer are of parameters that are trained.

fsdp.param @wte : tensor<4xf32> unit "u" init <constant, 0.0> frozen
fsdp.param @fc : tensor<4xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has an optimizer whose 'lr_scale' applies to nothing: no parameter matches 'fc1.*', expected the name of one, or names with '*' for any part of them; this model has 'wte', 'fc'}}
fsdp.step @train train optimizer <sgd, lr = 0.1, lr_scale = ["fc=2", "fc1.*=3"]> {
}

// -----

fsdp.param @wte : tensor<4xf32> unit "u" init <constant, 0.0> frozen
fsdp.param @fc : tensor<4xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has an optimizer whose 'no_decay' applies to nothing: 'w*' matches only parameters that are frozen, which no update changes; leave it out, or name some that are trained: 'fc'}}
fsdp.step @train train optimizer <sgd, lr = 0.1, no_decay = ["*", "w*"]> {
}

// -----

// segment C3: a drain trains.

fsdp.program @p role {} {
  // expected-error @below {{is a drain of kind 'evaluate', expected 'train', the kind of the steps whose updates it performs}}
  fsdp.segment @s evaluate drain next [@s] {
  }
}

// -----

// expected-error @below {{attribute 'zeroed' failed to satisfy constraint: unit attribute}}
fsdp.carried @c : tensor<f32> {zeroed = 1}

// -----

// storage C1: flat members do not overlap, are in order and fit.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x3xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has member 'b' at 11, expected at least 12 (the end of the previous member)}}
fsdp.storage @u : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>, #fsdp.member<@b at 11>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{members need 12 elements, got 10 (5 on each of 2 ranks)}}
fsdp.storage @u : tensor<5xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{of kind 'flat' has a shard of rank 2, expected 1}}
fsdp.storage @u : tensor<2x3xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{storage names axis 'tensor', which the mesh lacks}}
fsdp.storage @u : tensor<8xf32> flat over ["tensor"] states [] members []

// -----

// expected-error @below {{'members' must hold member attributes, got 3 : i64}}
fsdp.storage @u : tensor<8xf32> replicated over [] states [] members [3]

// -----

// expected-error @below {{has member 'w', which is not a parameter}}
fsdp.storage @u : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.param @w : tensor<8xf64> unit "u" init <constant, 0.0>
// expected-error @below {{has member 'w' of element type 'f64', expected 'f32'}}
fsdp.storage @u : tensor<8xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]

// -----

// param C9: the padded shape is part of the placement, holds the type and more, and fits a tensor.

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{has 'padded' but no placement; 'padded' requires one}}
fsdp.param @w : tensor<5x3xf32> unit "u" init <constant, 0.0> padded [8, 3]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{has 'padded' [8, 2], expected at least the sizes of 'tensor<5x3xf32>', one of them larger}}
fsdp.param @w : tensor<5x3xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [8, 2]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{has 'padded' [5, 3], expected at least the sizes of 'tensor<5x3xf32>', one of them larger}}
fsdp.param @w : tensor<5x3xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [5, 3]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{padded to [281474976710656, 3] takes more than 2^48 bytes; make it smaller}}
fsdp.param @w : tensor<5x3xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [281474976710656, 3]

// -----

// storage C2: a split along a dimension has one member and its ceil-divided shape.

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{is split along a dimension and has 0 members, expected 1}}
fsdp.storage @u : tensor<8xf32> dimension dim 0 over ["fsdp"] states [] members []

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<5x3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{splits dimension 2, expected a dimension below 2}}
fsdp.storage @u : tensor<3x3xf32> dimension dim 2 over ["fsdp"] states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<5x3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has shard 'tensor<2x3xf32>', expected 'tensor<3x3xf32>' (dimension 0 over 2 ranks)}}
fsdp.storage @u : tensor<2x3xf32> dimension dim 0 over ["fsdp"] states [] members [#fsdp.member<@w at 0>]

// -----

// storage C4: a copy has all members, in the type of the shard or a narrower one, where the storage is split.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has copy 'tensor<16xf32>', expected 'tensor<12xf32>' or that shape in a narrower float type}}
fsdp.storage @s : tensor<8xf32> flat over ["fsdp"] copy tensor<16xf32> states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x3xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has copy 'tensor<4x3xf64>', expected 'tensor<4x3xf32>' or that shape in a narrower float type}}
fsdp.storage @s : tensor<2x3xf32> dimension dim 0 over ["fsdp"] copy tensor<4x3xf64> states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.param @w : tensor<12xf32> unit "u" init <constant, 0.0>
// expected-error @below {{is replicated but has a copy, expected none}}
fsdp.storage @s : tensor<12xf32> replicated over [] copy tensor<12xf32> states [] members [#fsdp.member<@w at 0>]

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<12xf32> unit "u" init <constant, 0.0>
// expected-error @below {{has a copy and a state 'copy'; rename the state}}
fsdp.storage @s : tensor<8xf32> flat over ["fsdp"] copy tensor<12xf32> states ["copy"] members [#fsdp.member<@w at 0>]

// -----

// storage C3: replicated storages are whole.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
// expected-error @below {{is replicated but split over 2 ranks, expected none}}
fsdp.storage @u : tensor<8xf32> replicated over ["fsdp"] states [] members [#fsdp.member<@w at 0>]

// -----

// program C1: roles name coordinates of the mesh.

fsdp.mesh @mesh <["fsdp"=2]>
// expected-error @below {{role names axis 'pipeline', which the mesh lacks}}
fsdp.program @p role {pipeline = 0 : i64} {
}

// -----

fsdp.mesh @mesh <["pipeline"=2]>
// expected-error @below {{role has coordinate 2 : i64 on axis 'pipeline', expected 0 to 1}}
fsdp.program @p role {pipeline = 2 : i64} {
}

// -----

// program C2: each rank has one role.

fsdp.mesh @mesh <["pipeline"=2]>
// expected-error @below {{and the other programs cover 1 ranks, expected 2}}
fsdp.program @p role {pipeline = 0 : i64} {
}

// -----

fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @p role {pipeline = 0 : i64} {
}
// The first program answers for all, the note names the second.
// expected-error @below {{covers ranks that 'p' covers; each rank has one role}}
fsdp.program @q role {} {
}

// -----

// segment C1: `next` names segments of the program.

fsdp.program @p role {} {
  // expected-error @below {{has no next segment; name the segment itself to repeat it}}
  fsdp.segment @s train next [] {
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{names next segment 't', which program 'p' lacks}}
  fsdp.segment @s train next [@t] {
  }
}

// -----

// param C8: split has a list of axes for each dimension, and no axis twice.
// expected-error @below {{'split' has 1 entry, expected 2, one for each dimension}}
fsdp.param @a : tensor<4x2xf32> unit "u" init <constant, 0.0> split [["tensor"]]

// -----

// expected-error @below {{'split' has the entry "tensor", expected a list of names of axes}}
fsdp.param @a : tensor<4x2xf32> unit "u" init <constant, 0.0> split ["tensor", []]

// -----

// expected-error @below {{'split' names axis "tensor" twice; an axis splits one dimension}}
fsdp.param @a : tensor<4x2xf32> unit "u" init <constant, 0.0> split [["tensor"], ["data", "tensor"]]

// -----

// storage C5: members are split over the same axes, none of them the storage's.
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{"tensor"}]>>
fsdp.param @b : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
// expected-error @below {{has members 'a' and 'b', which are split over different axes in compute; give them different storages}}
fsdp.storage @u : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@a at 0>, #fsdp.member<@b at 2>]

// -----

fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @a : tensor<4xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{"tensor"}]>>
// expected-error @below {{is stored over axis "tensor", which splits its member 'a' in compute}}
fsdp.storage @u : tensor<16xf32> flat over ["tensor"] states [] members [#fsdp.member<@a at 0>]

// -----

// param C8: parts of axes in 'split'.

fsdp.mesh @mesh <["fsdp"=2, "tensor"=4]>
// expected-error @below {{'split' names 'tensor' and 'tensor:(1)2', which overlap; a part of an axis splits one dimension}}
fsdp.param @w : tensor<4x4xf32> unit "u" init <constant, 0.0> split [["tensor:(1)2"], ["tensor"]]

// -----

fsdp.mesh @mesh <["fsdp"=2, "tensor"=4]>
// expected-error @below {{'split' names 'tensor:(1)8', 8 positions after the first 1 of axis 'tensor' of size 4}}
fsdp.param @w : tensor<4x4xf32> unit "u" init <constant, 0.0> split [["tensor:(1)8"], []]

// -----

fsdp.mesh @mesh <["fsdp"=2, "tensor"=4]>
// expected-error @below {{'split' names "tensor(1)2", expected axes such as "tensor" or parts such as "tensor:(1)2"}}
fsdp.param @w : tensor<4x4xf32> unit "u" init <constant, 0.0> split [["tensor(1)2"], []]

// -----

// placement: axes that overlap, in storage, and in compute and storage.

fsdp.mesh @mesh <["fsdp"=4]>
// expected-error @below {{placement names 'fsdp' and 'fsdp:(1)2', which overlap; name each part of an axis once}}
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp", "fsdp:(1)2"], gather = f32, reduce = f32, reshard = always>

// -----

fsdp.mesh @mesh <["fsdp"=4]>
// expected-error @below {{axis "fsdp:(1)2" splits the parameter both in compute and in storage; use it for one of them}}
fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{"fsdp:(1)2"}]>>

// -----

// A parameter without a unit behind a flat one, which compares the units of all.
module {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @a : tensor<8xf32> unit "u" init <constant, 1.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
  // expected-error @+1 {{'fsdp.param' op requires attribute 'unit'}}
  "fsdp.param"() <{init = #fsdp.init<constant, 1.0>, placement = #fsdp.placement<flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>, type = tensor<8xf32>, sym_name = "b"}> : () -> ()
}
