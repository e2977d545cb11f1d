// A mark on the residual stream of a block whose weights are split over `tensor`: positions of norms and sums are split too.
// The product over split columns gathers its input, the one that sums over them leaves a partial sum, which a reduce-scatter
// completes; backward follows in reverse. Axes of the weights come first: neither of them is gathered. The numbers are those of one device.
// RUN: fsdp-opt %s --fsdp-to-local 2>&1 | FileCheck %s --check-prefix=LOCAL --implicit-check-not=warning --implicit-check-not="sharding: all_gather"
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: fsdp-opt %s --fsdp-to-local=sequence-parallel=off 2>&1 | FileCheck %s --check-prefix=OFF
// RUN: fsdp-opt %s --fsdp-sequence-parallel=mode=off | FileCheck %s --check-prefix=REMOVED --implicit-check-not=fsdp.constraint
// RUN: sed s/8x6x/8x5x/g %s | fsdp-opt --fsdp-sequence-parallel -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sed s/8x6x/8x5x/g %s | fsdp-opt --fsdp-sequence-parallel | FileCheck %s --check-prefix=REMOVED --implicit-check-not=fsdp.constraint
// RUN: sed s/8x6x/8x5x/g %s | fsdp-opt --fsdp-to-local=sequence-parallel=on 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: sed s/8x6x/8x5x/g %s > %t.odd.mlir; %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.odd.mlir %t.odd sequence-parallel=on
// RUN: sed 's/"tensor"=2/"tensor"=1/' %s | fsdp-opt --fsdp-sequence-parallel | FileCheck %s --check-prefix=REMOVED --implicit-check-not=fsdp.constraint
// Where marks alone name the axis it splits nothing over one rank, and need not be used; over two it must be.
// RUN: sed 's/"tensor"=2/"tensor"=1/; s/ split \[\[\], \["tensor"\]\]//' %s > %t.marks.mlir
// RUN: fsdp-opt %t.marks.mlir --fsdp-to-local | FileCheck %s --check-prefix=MARKS --implicit-check-not=fsdp.constraint
// RUN: sed 's/"fsdp"=2, "tensor"=1/"fsdp"=1, "tensor"=1/' %t.marks.mlir > %t.one.mlir
// RUN: fsdpc %t.one.mlir --emit=local | FileCheck %s --check-prefix=MARKS --implicit-check-not=fsdp.constraint
// RUN: fsdpc %t.one.mlir --mesh=fsdp=2 --emit=local | FileCheck %s --check-prefix=MARKS --implicit-check-not=fsdp.constraint
// RUN: sed 's/"tensor"=1/"tensor"=2/' %t.marks.mlir | not fsdp-opt --fsdp-to-local=sequence-parallel=off 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not fsdp-opt %s --fsdp-sequence-parallel=mode=maybe 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: sed 's/ {sequence_parallel}//' %s | not fsdp-opt --fsdp-sequence-parallel=mode=on 2>&1 | FileCheck %s --check-prefix=NONE

// LOCAL-LABEL: fsdp.segment @train
// LOCAL: nn.layer_norm {{.*}} : tensor<4x3x4xf32>
// LOCAL: fsdp.all_gather {{.*}} dim 1 over ["tensor"]{{.*}} : tensor<4x3x4xf32> -> tensor<4x{{[56]}}x4xf32>
// LOCAL: nn.einsum
// LOCAL: fsdp.reduce_scatter {{.*}} dim 1 over ["tensor"]{{.*}} : tensor<4x{{[56]}}x4xf32> -> tensor<4x3x4xf32>
// LOCAL: fsdp.all_gather {{.*}} dim 1 over ["tensor"]{{.*}} : tensor<4x3x4xf32> -> tensor<4x{{[56]}}x4xf32>
// LOCAL: fsdp.reduce_scatter {{.*}} dim 1 over ["tensor"]{{.*}} : tensor<4x{{[56]}}x4xf32> -> tensor<4x3x4xf32>
// LOCAL: nn.layer_norm_grad
// OFF-LABEL: fsdp.segment @train
// OFF: nn.layer_norm {{.*}} : tensor<4x6x4xf32>
// OFF: fsdp.all_reduce {{.*}} tensor<4x6x4xf32>
// REMOVED: fsdp.step @train
// REMARK: remark: norms and residual sums are computed whole on every rank: 5 positions are not a multiple of tensor=2; --sequence-parallel=on splits them with padding
// REMARK-NOT: remark
// MARKS-LABEL: fsdp.segment @train
// UNUSED: error: nothing uses axis "tensor": 'data' and 'fsdp' split the batch
// WORD: error: --sequence-parallel got 'maybe', expected auto, on or off
// NONE: error: --sequence-parallel got 'on', but the model marks no positions; write sequenceParallel(x) on its residual stream, or leave the option out
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @gamma : tensor<4xf32> unit "u" init <constant, 1.0>
fsdp.param @beta : tensor<4xf32> unit "u" init <normal, 0.5>
fsdp.param @w1 : tensor<4x8xf32> unit "u" init <normal, 0.5> split [[], ["tensor"]]
fsdp.param @w2 : tensor<8x4xf32> unit "u" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %in = fsdp.input "x" sample_dim 0 : tensor<8x6x4xf32>
  %x = fsdp.constraint %in <@mesh, [{?}, {"tensor"}, {}]> priorities [0, 1, 0] {sequence_parallel} : tensor<8x6x4xf32>
  %g = fsdp.read @gamma : tensor<4xf32>
  %b = fsdp.read @beta : tensor<4xf32>
  %n, %m, %r = nn.layer_norm %x, %g, %b eps 1.0e-05 : tensor<8x6x4xf32>, tensor<4xf32> -> tensor<8x6xf32>
  %w1 = fsdp.read @w1 : tensor<4x8xf32>
  %h = nn.einsum "bti,io->bto" %n, %w1 : (tensor<8x6x4xf32>, tensor<4x8xf32>) -> tensor<8x6x8xf32>
  %t = math.tanh %h : tensor<8x6x8xf32>
  %w2 = fsdp.read @w2 : tensor<8x4xf32>
  %o = nn.einsum "bti,io->bto" %t, %w2 : (tensor<8x6x8xf32>, tensor<8x4xf32>) -> tensor<8x6x4xf32>
  %y = arith.addf %x, %o : tensor<8x6x4xf32>
  %s = arith.mulf %y, %y : tensor<8x6x4xf32>
  %sum = nn.reduce sum "b t o ->" %s : tensor<8x6x4xf32> -> tensor<f64>
  %one = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %one
}
