// Optimizer state is split, parameters are not (ZeRO-1 and 2): forward reads a copy, gradients are reduce-scattered, and the
// updated shards are gathered into the copy. Numbers are those of one device, on meshes of one to three axes.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local=strategy=zero1 | %{plain} | FileCheck %s --check-prefix=F32
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local="strategy=zero2 precision=bf16" | %{plain} | FileCheck %s --check-prefix=BF16
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local="strategy=zero1 shard=w:1" | %{plain} | FileCheck %s --check-prefix=DIMENSION
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local="strategy=zero1 accumulate=2" | %{plain} | FileCheck %s --check-prefix=WHOLE
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local="strategy=zero2 accumulate=2" | %{plain} | FileCheck %s --check-prefix=SHARD
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local="strategy=zero1 buckets=parameter" | %{plain} | FileCheck %s --check-prefix=EACH
// RUN: fsdp-opt %t/model.mlir --fsdp-to-scheduled=strategy=zero1 | FileCheck %s --check-prefix=SCHEDULED
// RUN: fsdp-opt %t/model.mlir --fsdp-to-local="shard=*:flat(fsdp+data) reshard-after-forward=axes:fsdp" | %{plain} | FileCheck %s --check-prefix=PART
// RUN: fsdp-opt %t/model.mlir --fsdp-to-scheduled="shard=*:flat(fsdp+data) reshard-after-forward=axes:fsdp prefetch=0" | FileCheck %s --check-prefix=PARTS
// RUN: sed 's/\["data"=2, "fsdp"=2\]/["data"=2, "node"=2, "fsdp"=2]/' %t/model.mlir > %t.3d.mlir
// RUN: sed 's/\["data"=2, "fsdp"=2\]/["fsdp"=3]/' %t/model.mlir > %t.1d.mlir
// RUN: bash -c 'set -e; for s in zero1 %if all %{ ddp zero2 fsdp hsdp %}; do for p in f32 bf16; do %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/model.mlir %t.$s strategy=$s precision=$p; %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.3d.mlir %t.$s strategy=$s batch-axes=node precision=$p; done; done'
// RUN: bash -c 'set -e; for s in zero2 %if all %{ ddp zero1 fsdp %}; do for b in unit parameter; do %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.1d.mlir %t.$s strategy=$s buckets=$b accumulate=2; done; done'
// RUN: bash -c 'set -e; for s in "shard=*:flat(fsdp+node+data) reshard-after-forward=axes:fsdp" "shard=*:flat(node+fsdp) reshard-after-forward=axes:node" "shard=*:flat(fsdp+node+data) reshard-after-forward=axes:data+node" "shard=*:flat(fsdp+node+data) reshard-after-forward=axes:fsdp+node precision=bf16" "strategy=zero2 shard=*:0(fsdp+data)"; do %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.3d.mlir %t.axes $s batch-axes=node; done'
// RUN: bash -c 'set -e; for s in "shard=w:_,_;b:data" "strategy=zero1 shard=m:data,_" "strategy=ddp shard=v:_,fsdp;w:fsdp,data" "precision=bf16 shard=v:_,data@0"; do %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/model.mlir %t.compute "$s"; done'
// RUN: not fsdp-opt %t/model.mlir --fsdp-to-local="buckets=layer" 2>&1 | FileCheck %s --check-prefix=BUCKETS

// BUCKETS: error: option 'buckets' is 'layer', expected unit, parameter or units:K with K an integer from 2 to 1024

// In f32 the copy is the parameter; the update cuts its shard out of it.
// F32: fsdp.storage @u.flat : tensor<16xf32> flat over ["fsdp"] copy tensor<21xf32> states ["momentum"]
// F32-LABEL: fsdp.segment @train
// F32: %[[COPY:.*]] = fsdp.load @u.flat "copy" : tensor<21xf32>
// F32: fsdp.view %[[COPY]] at 0 : tensor<21xf32> -> tensor<6x3xf32>
// F32: %[[S:.*]] = fsdp.reduce_scatter %{{.*}} dim 0 over ["fsdp"] : tensor<21xf32> -> tensor<16xf32>
// F32-NEXT: %[[G:.*]] = fsdp.all_reduce sum %[[S]] over ["data"] : tensor<16xf32>
// F32-COUNT-2: fsdp.all_gather
// F32: %[[OLD:.*]] = fsdp.load @u.flat "copy" : tensor<21xf32>
// F32-NEXT: %[[P:.*]] = fsdp.all_slice %[[OLD]] dim 0 over ["fsdp"] : tensor<21xf32> -> tensor<16xf32>
// F32: %[[NEW:.*]], %{{.*}} = fsdp.optimizer_step {{.*}} @u.flat %[[P]], %[[G]]
// F32: %[[ALL:.*]] = fsdp.all_gather %[[NEW]] dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<21xf32>
// F32-NEXT: fsdp.store %[[ALL]], @u.flat "copy" : tensor<21xf32>
// F32-NOT: "parameter"
// An evaluation gathers nothing.
// F32-LABEL: fsdp.segment @evaluate
// F32-NOT: fsdp.all_gather

// In bf16 the shard is the f32 master; the copy, and its gather, are bf16.
// BF16: fsdp.storage @u.flat : tensor<16xf32> flat over ["fsdp"] copy tensor<21xbf16> states ["momentum"]
// BF16-LABEL: fsdp.segment @train
// BF16: %[[COPY:.*]] = fsdp.load @u.flat "copy" : tensor<21xbf16>
// BF16-COUNT-2: fsdp.all_gather
// BF16: %[[P:.*]] = fsdp.load @u.flat "parameter" : tensor<16xf32>
// BF16: %[[NEW:.*]], %{{.*}} = fsdp.optimizer_step {{.*}} @u.flat %[[P]]
// BF16: fsdp.store %[[NEW]], @u.flat "parameter" : tensor<16xf32>
// BF16-NEXT: fsdp.store %{{.*}}, @u.flat "momentum"
// BF16-NEXT: %[[CAST:.*]] = arith.truncf %[[NEW]] : tensor<16xf32> to tensor<16xbf16>
// BF16-NEXT: %[[ALL:.*]] = fsdp.all_gather %[[CAST]] dim 0 over ["fsdp"] : tensor<16xbf16> -> tensor<21xbf16>
// BF16-NEXT: fsdp.store %[[ALL]], @u.flat "copy" : tensor<21xbf16>

// DIMENSION: fsdp.storage @w.shard : tensor<6x2xf32> dimension dim 1 over ["fsdp"] copy tensor<6x3xf32>
// DIMENSION: fsdp.reduce_scatter %{{.*}} dim 1 over ["fsdp"] : tensor<6x3xf32> -> tensor<6x2xf32>
// DIMENSION: fsdp.all_slice %{{.*}} dim 1 over ["fsdp"] : tensor<6x3xf32> -> tensor<6x2xf32>
// DIMENSION: fsdp.all_gather %{{.*}} dim 1 over ["fsdp"] : tensor<6x2xf32> -> tensor<6x3xf32>

// What is added up over microbatches is the whole gradient, or the shard of it.
// WHOLE: fsdp.carried @u.flat.accumulator : tensor<21xf32> of @u.flat
// SHARD: fsdp.carried @u.flat.accumulator : tensor<16xf32> of @u.flat

// EACH: fsdp.storage @w.flat : tensor<16xf32> flat over ["fsdp"] copy tensor<18xf32>
// EACH: fsdp.storage @b.flat : tensor<16xf32> flat over ["fsdp"] copy tensor<3xf32>
// EACH-LABEL: fsdp.segment @train
// EACH-COUNT-4: fsdp.reduce_scatter
// EACH-COUNT-4: fsdp.all_gather

// The gather writes the copy itself, and the update works in the buffer of the cut.
// SCHEDULED: %[[COPY:.*]] = fsdp.buffer "u.flat.copy" persistent holds @u.flat "copy"
// SCHEDULED-NOT: "u.flat.parameter"
// SCHEDULED: fsdp.launch "u.flat.shard all_slice" on "compute" {{.*}}outs(%[[PIECE:.*]] :
// SCHEDULED: fsdp.launch "{{[^"]*}}" on "compute" of "u" update
// SCHEDULED: fsdp.launch "u.flat.gather all_gather" on "reduce" {{.*}}outs(%[[COPY]] :

// Stored over all ranks, forward gathers over one axis and keeps that for backward.
// PART: fsdp.storage @u.flat : tensor<16xf32> flat over ["fsdp", "data"] states
// PART-LABEL: fsdp.segment @train
// PART: %[[K:.*]] = fsdp.all_gather %{{.*}} dim 0 over ["data"] : tensor<16xf32> -> tensor<32xf32>
// PART-NEXT: fsdp.all_gather %[[K]] dim 0 over ["fsdp"] : tensor<32xf32> -> tensor<21xf32>
// PART: %[[M:.*]] = fsdp.all_gather %{{.*}} dim 0 over ["data"] : tensor<16xf32> -> tensor<32xf32>
// PART-NEXT: fsdp.all_gather %[[M]] dim 0 over ["fsdp"] : tensor<32xf32> -> tensor<9xf32>
// PART: %[[V:.*]] = fsdp.all_gather %{{.*}} dim 0 over ["data"] : tensor<16xf32> -> tensor<32xf32>
// PART-NEXT: fsdp.all_gather %[[V]] dim 0 over ["fsdp"] : tensor<32xf32> -> tensor<15xf32>
// PART: fsdp.reduce_scatter %{{.*}} dim 0 over ["fsdp", "data"]
// PART-NOT: fsdp.all_gather
// PART: fsdp.all_gather %[[M]] dim 0 over ["fsdp"] : tensor<32xf32> -> tensor<9xf32>
// PART-NOT: fsdp.all_gather
// PART-LABEL: fsdp.segment @evaluate

// Without prefetch a unit is gathered when the one before it is done; the part of it may come earlier.
// PARTS: fsdp.launch "u.flat all_gather" on "gather"
// PARTS: fsdp.launch "u.flat all_gather 2" on "gather"

//--- model.mlir
fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.param @w : tensor<6x3xf32> unit "u" init <normal, 0.5>
fsdp.param @b : tensor<3xf32> unit "u" init <constant, 0.1>
fsdp.param @m : tensor<3x3xf32> unit "m" init <normal, 0.5>
fsdp.param @v : tensor<3x5xf32> unit "v" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1, momentum = 0.9, weight_decay = 0.1, clip = 1.0> {
  %x = fsdp.input "x" sample_dim 0 : tensor<10x6xf32>
  %y = fsdp.input "y" sample_dim 0 : tensor<10x5xf32>
  %w = fsdp.read @w : tensor<6x3xf32>
  %b = fsdp.read @b : tensor<3xf32>
  %m = fsdp.read @m : tensor<3x3xf32>
  %v = fsdp.read @v : tensor<3x5xf32>
  %z = nn.einsum "bi,io->bo" %x, %w : (tensor<10x6xf32>, tensor<6x3xf32>) -> tensor<10x3xf32>
  %r = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<10x3xf32>
  %p = arith.addf %z, %r : tensor<10x3xf32>
  %t = math.tanh %p : tensor<10x3xf32>
  %z2 = nn.einsum "bi,io->bo" %t, %m : (tensor<10x3xf32>, tensor<3x3xf32>) -> tensor<10x3xf32>
  %t2 = math.tanh %z2 : tensor<10x3xf32>
  %o = nn.einsum "bi,io->bo" %t2, %v : (tensor<10x3xf32>, tensor<3x5xf32>) -> tensor<10x5xf32>
  %e = arith.subf %o, %y : tensor<10x5xf32>
  %q = arith.mulf %e, %e : tensor<10x5xf32>
  %sum = nn.reduce sum "b o ->" %q : tensor<10x5xf32> -> tensor<f64>
  %weight = arith.constant dense<50.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
