// The unit of a weight that is used in two places is reduced for each of them, or once.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local | FileCheck %s --check-prefix=EACH
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local=tied-gradients=once | FileCheck %s --check-prefix=ONCE
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local="tied-gradients=once accumulate=2" | FileCheck %s --check-prefix=MICROBATCHES
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local="tied-gradients=once accumulate=2 accumulate-reduce=last" | FileCheck %s --check-prefix=LAST
// RUN: fsdp-opt %t/tied.mlir --fsdp-to-local="tied-gradients=once precision=bf16 reduce-precision=bf16" | FileCheck %s --check-prefix=NARROW
// RUN: not fsdp-opt %t/tied.mlir --fsdp-to-local=tied-gradients=never 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once accumulate=2
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once accumulate=2 accumulate-reduce=last strategy=hsdp
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once precision=bf16 strategy=zero1
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once strategy=zero2 remat=full
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once strategy=ddp defer-updates=on
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/tied.mlir %t/numbers tied-gradients=once buckets=parameter loss-chunks=2

// EACH-LABEL: fsdp.segment @train
// EACH: fsdp.reduce_scatter %{{.*}} over ["fsdp"] {fsdp.reduces = @tied.flat
// EACH: fsdp.reduce_scatter %{{.*}} over ["fsdp"] {fsdp.reduces = @block.flat
// EACH: fsdp.reduce_scatter %{{.*}} over ["fsdp"] {fsdp.reduces = @tied.flat
// The shards are added up, then reduced over replicas.
// EACH: arith.addf {{.*}}fsdp.reduces = @tied.flat

// ONCE-LABEL: fsdp.segment @train
// ONCE-NOT: fsdp.reduce_scatter %{{.*}}@tied.flat
// ONCE: fsdp.reduce_scatter %{{.*}} over ["fsdp"] {fsdp.reduces = @block.flat
// The terms are added up as a whole, by an op of backward.
// ONCE: %[[WHOLE:.*]] = arith.addf %{{.*}} : tensor<8x6xf32>
// ONCE-NOT: fsdp.reduce_scatter
// ONCE: fsdp.flatten %[[WHOLE]], {{.*}}fsdp.reduces = @tied.flat
// ONCE: fsdp.reduce_scatter %{{.*}} over ["fsdp"] {fsdp.reduces = @tied.flat
// ONCE-NOT: fsdp.reduce_scatter

// MICROBATCHES-LABEL: fsdp.segment @train.first
// MICROBATCHES-COUNT-2: fsdp.reduce_scatter
// MICROBATCHES-NOT: fsdp.reduce_scatter
// MICROBATCHES-LABEL: fsdp.segment @train.last
// MICROBATCHES-COUNT-2: fsdp.reduce_scatter
// MICROBATCHES-NOT: fsdp.reduce_scatter
// MICROBATCHES-LABEL: fsdp.segment @train.update

// LAST-LABEL: fsdp.segment @train.first
// LAST-NOT: fsdp.reduce_scatter
// LAST-LABEL: fsdp.segment @train.last
// LAST-COUNT-2: fsdp.reduce_scatter
// LAST-NOT: fsdp.reduce_scatter
// LAST-LABEL: fsdp.segment @train.update

// NARROW-LABEL: fsdp.segment @train
// NARROW: fsdp.reduce_scatter %{{.*}}@block.flat{{.*}}bf16
// NARROW: fsdp.reduce_scatter %{{.*}}@tied.flat{{.*}}bf16
// NARROW-NOT: fsdp.reduce_scatter

// BAD: error: option 'tied-gradients' is 'never', expected each or once

//--- tied.mlir
fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.param @table : tensor<8x6xf32> unit "tied" init <normal, 0.5>
fsdp.param @scale : tensor<6xf32> unit "tied" init <normal, 0.5>
fsdp.param @block : tensor<6x6xf32> unit "block" init <normal, 0.5>
fsdp.step @train train optimizer <adam, lr = 0.01, clip = 1.0> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<8x3xi32>
  %table = fsdp.read @table : tensor<8x6xf32>
  %x = nn.embedding %table, %ids : tensor<8x6xf32>, tensor<8x3xi32> -> tensor<8x3x6xf32>
  %block = fsdp.read @block : tensor<6x6xf32>
  %h = nn.einsum "bsi,io->bso" %x, %block : (tensor<8x3x6xf32>, tensor<6x6xf32>) -> tensor<8x3x6xf32>
  %scale = fsdp.read @scale : tensor<6xf32>
  %y = nn.einsum "bsi,i->bsi" %h, %scale : (tensor<8x3x6xf32>, tensor<6xf32>) -> tensor<8x3x6xf32>
  %logits = nn.einsum "bsi,vi->bsv" %y, %table : (tensor<8x3x6xf32>, tensor<8x6xf32>) -> tensor<8x3x8xf32>
  %losses, %lse = nn.cross_entropy %logits, %ids : tensor<8x3x8xf32>, tensor<8x3xi32> -> tensor<8x3xf32>, tensor<8x3xf32>
  %sum = nn.reduce sum "b s ->" %losses : tensor<8x3xf32> -> tensor<f64>
  %count = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %count
}
