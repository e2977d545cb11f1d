// What is numbered by integers is padded to a multiple of 64 for each rank that has a part, or of less where that would waste much.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-global | FileCheck %s --check-prefix=TIED
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-global=vocabulary-multiple=1 | FileCheck %s --check-prefix=OFF
// RUN: sed 's/"tensor"=1/"tensor"=3/; s/"fsdp"=2/"fsdp"=1/' %t/tied.mlir > %t/three.mlir
// RUN: fsdp-opt %t/three.mlir --fsdp-to-global | FileCheck %s --check-prefix=THREE
// RUN: sed 's/1001x/257x/g' %t/tied.mlir > %t/small.mlir
// RUN: fsdp-opt %t/small.mlir --fsdp-to-global | FileCheck %s --check-prefix=SMALL
// RUN: sed 's/1001x/65x/g' %t/tied.mlir > %t/few.mlir
// RUN: fsdp-opt %t/few.mlir --fsdp-to-global | FileCheck %s --check-prefix=FEW
// RUN: sed 's/1001x/1024x/g' %t/tied.mlir > %t/even.mlir
// RUN: fsdp-opt %t/even.mlir --fsdp-to-global | FileCheck %s --check-prefix=FEW
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local | FileCheck %s --check-prefix=LOCAL
// RUN: fsdp-opt %t/three.mlir --fsdp-to-local | FileCheck %s --check-prefix=PARTS
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local=loss-chunks=3 | FileCheck %s --check-prefix=CHUNKS
// RUN: fsdp-opt %t/seen.mlir --fsdp-to-global 2>&1 | FileCheck %s --check-prefix=SEEN
// RUN: fsdp-opt %t/three.mlir --fsdp-to-global --fsdp-draw-sharding=value=wte -o /dev/null 2>&1 | FileCheck %s --check-prefix=DRAWN
// RUN: fsdp-opt %t/three.mlir --fsdp-to-global --fsdp-print-shardings=only=wte -o /dev/null 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not fsdp-opt %t/sizes.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not fsdp-opt %t/obstacle.mlir --fsdp-partition 2>&1 | FileCheck %s --check-prefix=OBSTACLE
// RUN: fsdp-opt %t/rows.mlir --fsdp-to-local | FileCheck %s --check-prefix=ALONG
// The numbers are those of the true size: the global phase has no padding.
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/rows.mlir %t/rows
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/three.mlir %t/three
// RUN: sed 's/"tensor"=1/"tensor"=2/' %t/tied.mlir > %t/four.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/four.mlir %t/four
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/four.mlir %t/chunks loss-chunks=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/four.mlir %t/accumulate accumulate=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/stored shard=wte:0
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/copies strategy=zero1
// Stored along the rows that are split in compute: parts of parts are those of the padded size, 1024, which true sizes need not have.
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/four.mlir %t/both shard=wte:0
// RUN: fsdp-opt %t/four.mlir --fsdp-to-local=shard=wte:0 | FileCheck %s --check-prefix=BOTH
// BOTH: fsdp.storage @wte.shard : tensor<256x8xf32>
// RUN: sed 's/1001x/257x/g' %t/four.mlir > %t/unpadded.mlir
// Without padding, 257 rows are 129 and 128 in compute, each stored in two parts.
// RUN: fsdp-opt %t/unpadded.mlir --fsdp-to-local=shard=wte:0 | FileCheck %s --check-prefix=UNPADDED
// UNPADDED: fsdp.storage @wte.shard : tensor<65x8xf32>
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/unpadded.mlir %t/uneven shard=wte:0
// Even where no multiple is near.
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/few.mlir %t/wide most-vocabulary-padding=100

//--- tied.mlir
// The table, the bias of the logits and what is tied to them grow together; types and steps do not change.
// TIED: fsdp.param @wte : tensor<1001x8xf32> {{.*}} padded [1024, 8]
// TIED: fsdp.param @bias : tensor<1001xf32> {{.*}} padded [1024]
// TIED: fsdp.param @scale : tensor<8xf32>
// TIED-NOT: padded
// TIED: nn.einsum "btd,vd->btv" {{.*}} -> tensor<5x3x1001xf32>
// OFF-NOT: padded
// Three ranks: multiples of 3 x 64 and 3 x 32 would be more than a twentieth.
// THREE: fsdp.param @wte : tensor<1001x8xf32> {{.*}} padded [1008, 8]
// 257 to 264, since 272 would be more than a twentieth.
// SMALL: fsdp.param @wte : tensor<257x8xf32> {{.*}} padded [264, 8]
// FEW-NOT: padded
//
// On each rank: ids are checked against the true size; the kernels are told how many columns are classes; no mask takes a pass
// over the logits, and the gradients of the padding are zero without one.
// LOCAL-LABEL: fsdp.segment @train
// LOCAL: %[[ROWS:.*]] = fsdp.view %{{.*}} at 0 {{.*}} -> tensor<1024x8xf32>
// LOCAL: %[[OWN:.*]] = fsdp.shard_indices %{{.*}} of 1001 over [] part 1024
// LOCAL: nn.embedding partial %[[ROWS]], %[[OWN]]
// LOCAL: %[[COUNT:.*]] = fsdp.shard_size of 1001 over [] part 1024
// LOCAL: nn.partial_cross_entropy {{.*}} of %[[COUNT]] upstream {{.*}} : tensor<3x3x1024xf32>
// LOCAL-NOT: fsdp.mask_padding {{.*}} of 1001
// LOCAL-LABEL: fsdp.segment @evaluate
// LOCAL: nn.partial_cross_entropy
// PARTS: fsdp.shard_indices %{{.*}} of 1001 over ["tensor"] part 336
// PARTS: fsdp.shard_size of 1001 over ["tensor"] part 336
// DRAWN: [0, 336)     [336, 672)    [672, 1001)
// TABLE: wte {{.*}} 1001x8 {{.*}} 336x8
//
// A batch that does not divide either: 5 samples on 2 ranks. The gradient of the bias excludes the samples of weight 0, so positions are
// cut.
// CHUNKS-LABEL: fsdp.segment @train
// CHUNKS-COUNT-3: nn.partial_cross_entropy {{.*}} upstream {{.*}} : tensor<3x1x1024xf32>
fsdp.mesh @mesh <["fsdp"=2, "tensor"=1]>
fsdp.param @wte : tensor<1001x8xf32> unit "embed" init <normal, 1.0> split [["tensor"], []]
fsdp.param @bias : tensor<1001xf32> unit "embed" init <normal, 1.0>
fsdp.param @scale : tensor<8xf32> unit "head" init <constant, 1.0>
fsdp.step @train train optimizer <adamw, lr = 0.1, weight_decay = 0.1, clip = 0.5> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<5x3xi32>
  %labels = fsdp.input "labels" sample_dim 0 : tensor<5x3xi32>
  %table = fsdp.read @wte : tensor<1001x8xf32> loc("wte")
  %bias = fsdp.read @bias : tensor<1001xf32>
  %scale = fsdp.read @scale : tensor<8xf32>
  %x = nn.embedding %table, %ids : tensor<1001x8xf32>, tensor<5x3xi32> -> tensor<5x3x8xf32>
  %t = math.tanh %x : tensor<5x3x8xf32>
  %s = nn.repeat "d -> b t d" %scale : tensor<8xf32> -> tensor<5x3x8xf32>
  %h = arith.mulf %t, %s : tensor<5x3x8xf32>
  %y = nn.einsum "btd,vd->btv" %h, %table : (tensor<5x3x8xf32>, tensor<1001x8xf32>) -> tensor<5x3x1001xf32>
  %b = nn.repeat "v -> b t v" %bias : tensor<1001xf32> -> tensor<5x3x1001xf32>
  %logits = arith.addf %y, %b : tensor<5x3x1001xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels
      : tensor<5x3x1001xf32>, tensor<5x3xi32> -> tensor<5x3xf32>, tensor<5x3xf32>
  %sum = nn.reduce sum "b t ->" %loss : tensor<5x3xf32> -> tensor<f64>
  %count = arith.constant dense<15.0> : tensor<f64>
  fsdp.loss %sum over %count
}

//--- seen.mlir
// SEEN: seen.mlir:[[#]]:{{.*}} remark: dimension 0 of 'head' is not padded from 1001 to 1024: 'nn.slice' needs all of it
// SEEN: fsdp.param @head : tensor<1001x8xf32>
// SEEN-NOT: padded
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @head : tensor<1001x8xf32> unit "head" init <normal, 1.0>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
  %labels = fsdp.input "labels" sample_dim 0 : tensor<4xi32>
  %head = fsdp.read @head : tensor<1001x8xf32>
  %logits = nn.einsum "bd,vd->bv" %x, %head : (tensor<4x8xf32>, tensor<1001x8xf32>) -> tensor<4x1001xf32>
  %p = nn.slice %logits dim 1 start 1 : tensor<4x1001xf32> -> tensor<4x1000xf32>
  %best = nn.reduce max "b v -> b" %p : tensor<4x1000xf32> -> tensor<4xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels
      : tensor<4x1001xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
  %all = arith.addf %best, %loss : tensor<4xf32>
  %sum = nn.reduce sum "b ->" %all : tensor<4xf32> -> tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.loss %sum over %count
}

//--- rows.mlir
// What works along the classes does not see the padding: a mask comes first, and each stays one kernel where that is enough. A norm divides by the
// true size.
// ALONG: fsdp.mask_padding %{{.*}} dim 1 of 1001 over [] fill -inf : tensor<2x1024xf32>
// ALONG: nn.argmax %[[X:.*]] : tensor<2x1024xf32> -> tensor<2xi32>
// ALONG: nn.softmax %[[X]] : tensor<2x1024xf32>
// ALONG: arith.constant dense<1.001000e+03>
// ALONG: math.rsqrt
// ALONG: nn.scan_sum {{.*}} : tensor<2x1024xf32>
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @head : tensor<1001x8xf32> unit "head" init <normal, 1.0>
fsdp.param @scale : tensor<1001xf32> unit "head" init <normal, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
  %labels = fsdp.input "labels" sample_dim 0 : tensor<4xi32>
  %head = fsdp.read @head : tensor<1001x8xf32>
  %logits = nn.einsum "bd,vd->bv" %x, %head : (tensor<4x8xf32>, tensor<1001x8xf32>) -> tensor<4x1001xf32>
  %guess = nn.argmax %logits : tensor<4x1001xf32> -> tensor<4xi32>
  %number = arith.sitofp %guess : tensor<4xi32> to tensor<4xf32>
  %numbers = nn.reduce sum "b ->" %number : tensor<4xf32> -> tensor<f64>
  %count = arith.constant dense<4.0> : tensor<f64>
  fsdp.metric "guess" %numbers over %count
  %p = nn.softmax %logits : tensor<4x1001xf32>
  %scale = fsdp.read @scale : tensor<1001xf32>
  %n, %rstd = nn.rms_norm %p, %scale eps 1.0e-05 : tensor<4x1001xf32>, tensor<1001xf32> -> tensor<4xf32>
  %s = nn.scan_sum "b v" along "v" %n reverse : tensor<4x1001xf32>
  %loss, %lse = nn.cross_entropy %s, %labels
      : tensor<4x1001xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
  %sum = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f64>
  fsdp.loss %sum over %count
}

//--- sizes.mlir
// What is said by hand must agree: the bias is added to the logits.
// SIZES: error: 'fsdp.param' op dimension 0 of 'bias' is padded to 16, expected 24 to match a dimension of 'head', which steps combine with it; run --fsdp-pad-vocabulary or correct 'padded'
// SIZES: note: the other parameter is here
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @head : tensor<13x8xf32> unit "head" init <normal, 1.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [24, 8]
fsdp.param @bias : tensor<13xf32> unit "head" init <normal, 1.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [16]
fsdp.step @evaluate evaluate {
  %head = fsdp.read @head {fsdp.shardings = [#fsdp.sharding<@mesh, [{}, {}]>]} : tensor<13x8xf32>
  %bias = fsdp.read @bias {fsdp.shardings = [#fsdp.sharding<@mesh, [{}]>]} : tensor<13xf32>
  %sums = nn.reduce sum "v d -> v" %head {fsdp.shardings = [#fsdp.sharding<@mesh, [{}]>]} : tensor<13x8xf32> -> tensor<13xf32>
  %both = arith.addf %sums, %bias {fsdp.shardings = [#fsdp.sharding<@mesh, [{}]>]} : tensor<13xf32>
}

//--- obstacle.mlir
// OBSTACLE: error: 'fsdp.param' op dimension 0 of 'head' is padded to 24, but 'nn.slice' needs all of it; leave 'padded' out
// OBSTACLE: note: the op is here
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @head : tensor<13xf32> unit "head" init <normal, 1.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always> padded [24]
fsdp.step @evaluate evaluate {
  %head = fsdp.read @head {fsdp.shardings = [#fsdp.sharding<@mesh, [{}]>]} : tensor<13xf32>
  %p = nn.slice %head dim 0 start 1 {fsdp.shardings = [#fsdp.sharding<@mesh, [{}]>]} : tensor<13xf32> -> tensor<12xf32>
}
