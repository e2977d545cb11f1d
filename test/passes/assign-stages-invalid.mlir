// RUN: sed '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages=stages=1,1,1 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: error: --stages=1,1,1 has 3 stages, expected 2: 2 ranks along 'pipeline', 1 each
// RUN: sed '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages="stages=1,1 schedule=interleaved:2" 2>&1 | FileCheck %s --check-prefix=UNITS
// UNITS: error: the model has 2 units (a, b), expected at least 4, one for each stage; take fewer ranks along 'pipeline', or fewer parts a rank
// RUN: sed -e '/^fsdp.step @other/,$d' -e '/^fsdp.step/,$s/ {fsdp.structure = [^}]*}//' %s | not fsdp-opt --fsdp-assign-stages 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: error: no op of the model has a unit, expected ops of at least 2 units, one for each stage; name the unit of each op in its 'fsdp.structure', not that of parameters alone
// RUN: sed '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages=stages=2 2>&1 | FileCheck %s --check-prefix=SINGLE
// SINGLE: error: --stages=2 has 1 stage, expected 2: 2 ranks along 'pipeline', 1 each
// RUN: sed '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages=stages=1,2 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: --stages=1,2 adds up to more units than the 2 of the model: a, b
// RUN: sed '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages=stages=0,2 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: --stages=0,2: got '0', expected {{.*}}; give 'auto', or the number of units of each stage, separated by commas
// RUN: sed '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages=schedule=zigzag 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: --pipeline-schedule: got 'zigzag', expected gpipe, 1f1b, zb, or interleaved:V
// RUN: sed 's/"pipeline"=2/"pipeline"=1/' %s | not fsdp-opt --fsdp-assign-stages=stages=2 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: --stages=2 divides a model over the mesh axis 'pipeline', which has no ranks to divide it over, or is used by a manual region; give the axis a size of 2 or more and no other use, or leave the option out
// A value or a parameter that is split over the axis.
// RUN: sed -e 's/^  %1 = nn.einsum "bi,io->bo" %0, %b/  %c = fsdp.constraint %0 <@mesh, [{"pipeline"}, {}]> : tensor<8x4xf32>\n  %1 = nn.einsum "bi,io->bo" %c, %b/' -e '/^fsdp.step @other/,$d' %s | not fsdp-opt --fsdp-assign-stages 2>&1 | FileCheck %s --check-prefix=CONSTRAINT
// CONSTRAINT: error: 'fsdp.constraint' op splits a value over the mesh axis 'pipeline', whose ranks compute different stages of the model; name other axes, or call this one otherwise
// RUN: sed -e '/^fsdp.step @other/,$d' %s | not fsdp-opt "--fsdp-shard-parameters=shard=a:flat(pipeline)" --fsdp-assign-stages 2>&1 | FileCheck %s --check-prefix=STORED
// STORED: error: 'fsdp.param' op 'a' is split or stored over the mesh axis 'pipeline', whose ranks
// RUN: sed 's/@other evaluate/@other prefill/' %s | not fsdp-opt --fsdp-assign-stages 2>&1 | FileCheck %s --check-prefix=GENERATE
// GENERATE: error: --generate is not possible with ranks along 'pipeline'; compile the program that generates for a mesh without the axis
// RUN: not fsdp-opt %s --fsdp-assign-stages 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: step 'other' uses units in another order (b, a) than step 'train' (a, b); a pipeline has the same stages in both
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">} : tensor<4x4xf32>
  %0 = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"b">} : tensor<4x4xf32>
  %1 = nn.einsum "bi,io->bo" %0, %b {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %1 {fsdp.structure = #fsdp.structure<"b">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
fsdp.step @other evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"b">} : tensor<4x4xf32>
  %0 = nn.einsum "bi,io->bo" %x, %b {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">} : tensor<4x4xf32>
  %1 = nn.einsum "bi,io->bo" %0, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %1 {fsdp.structure = #fsdp.structure<"a">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
