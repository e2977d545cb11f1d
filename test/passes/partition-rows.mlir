// Rows of 10 over 4 ranks of "tensor": 3, 3, 3 and 1 elements. Each op takes a few numbers per row; no row is gathered.
// RUN: fsdp-opt %s --fsdp-to-global --fsdp-partition 2>%t.remarks | FileCheck %s
// RUN: not grep all_gather %t.remarks
// RUN: fsdp-opt %s --fsdp-to-global=precision=bf16 --fsdp-partition 2>/dev/null | FileCheck %s --check-prefix=BF16
// Even parts need no mask.
// RUN: sed 's/"tensor"=4/"tensor"=2/' %s | fsdp-opt --fsdp-to-global --fsdp-partition 2>/dev/null | FileCheck %s --check-prefix=EVEN
// What no rank shares is as it was.
// RUN: sed 's/"tensor"=4/"tensor"=1/' %s | fsdp-opt --fsdp-to-global --fsdp-partition 2>/dev/null | FileCheck %s --check-prefix=WHOLE
// The same numbers, also over two axes in another order than that of the mesh, and of rows of 3, of which some rank has none.
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.numbers
// RUN: sed 's/10xf32>/3xf32>/g' %s > %t.empty.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.empty.mlir %t.empty
// RUN: sed 's/"tensor"=4/"row"=2, "tensor"=2/; s/{"tensor"}/{"tensor", "row"}/' %t.empty.mlir > %t.axes.mlir
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.axes.mlir %t.axes
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t.empty.mlir %t.accumulate accumulate=2

// What is behind the last element is less than any. Of the ranks with the largest maximum the smallest index counts: the largest
// with its sign turned.
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[H:.*]] = nn.einsum "bd,dv->bv" {{.*}} -> tensor<4x3xf32>
// CHECK-NEXT: %[[X:.*]] = fsdp.mask_padding %[[H]] dim 1 of 10 over ["tensor"] fill -inf
// CHECK-NEXT: %[[OWN:.*]] = nn.reduce max "d0 d1 -> d0" %[[X]]
// CHECK-NEXT: %[[TOP:.*]] = fsdp.all_reduce max %[[OWN]] over ["tensor"] : tensor<4xf32>
// CHECK-NEXT: %[[FIRST:.*]] = fsdp.shard_offset of 10 over ["tensor"]
// CHECK-NEXT: %[[NARROW:.*]] = arith.trunci %[[FIRST]] : tensor<i64> to tensor<i32>
// CHECK-NEXT: %[[FIRSTS:.*]] = nn.repeat "-> d0" %[[NARROW]]
// CHECK-NEXT: %[[HERE:.*]] = nn.argmax %[[X]] : tensor<4x3xf32> -> tensor<4xi32>
// CHECK-NEXT: %[[INDEX:.*]] = arith.addi %[[HERE]], %[[FIRSTS]]
// CHECK: %[[TURNED:.*]] = arith.subi %{{.*}}, %[[INDEX]]
// CHECK-NEXT: %[[LESS:.*]] = arith.cmpf olt, %[[OWN]], %[[TOP]]
// CHECK-NEXT: %[[NONE:.*]] = arith.constant dense<-10> : tensor<4xi32>
// CHECK-NEXT: %[[CANDIDATE:.*]] = arith.select %[[LESS]], %[[NONE]], %[[TURNED]]
// CHECK-NEXT: %[[BEST:.*]] = fsdp.all_reduce max %[[CANDIDATE]] over ["tensor"] : tensor<4xi32>
// CHECK: arith.subi %{{.*}}, %[[BEST]]

// A softmax with the same mask; its padding is 0.
// CHECK: %[[OWN2:.*]] = nn.reduce max "d0 d1 -> d0" %[[X]]
// CHECK-NEXT: %[[TOP2:.*]] = fsdp.all_reduce max %[[OWN2]] over ["tensor"] : tensor<4xf32>
// CHECK-NEXT: %[[TOPS:.*]] = nn.repeat "d0 -> d0 d1" %[[TOP2]]
// CHECK-NEXT: %[[SHIFT:.*]] = arith.subf %[[X]], %[[TOPS]]
// CHECK-NEXT: %[[EXP:.*]] = math.exp %[[SHIFT]]
// CHECK-NEXT: %[[PART:.*]] = nn.reduce sum "d0 d1 -> d0" %[[EXP]]
// CHECK-NEXT: %[[SUM:.*]] = fsdp.all_reduce sum %[[PART]] over ["tensor"] : tensor<4xf32>
// CHECK-NEXT: %[[SUMS:.*]] = nn.repeat "d0 -> d0 d1" %[[SUM]]
// CHECK-NEXT: %[[P:.*]] = arith.divf %[[EXP]], %[[SUMS]]

// A layer norm: the mean, then the deviations from it, which are not 0 in the padding. Scale and bias are split as rows are.
// CHECK: %[[SCALE:.*]] = fsdp.view %{{.*}} -> tensor<3xf32>
// CHECK: %[[BIAS:.*]] = fsdp.view %{{.*}} -> tensor<3xf32>
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum "d0 d1 -> d0" %[[P]]
// CHECK-NEXT: %[[ALL:.*]] = fsdp.all_reduce sum %[[S]] over ["tensor"] : tensor<4xf32>
// CHECK-NEXT: %[[TEN:.*]] = arith.constant dense<1.000000e+01> : tensor<4xf32>
// CHECK-NEXT: %[[MEAN:.*]] = arith.divf %[[ALL]], %[[TEN]]
// CHECK: %[[D:.*]] = arith.subf %[[P]], %{{.*}}
// CHECK-NEXT: %[[DM:.*]] = fsdp.mask_padding %[[D]] dim 1 of 10 over ["tensor"] fill 0.0
// CHECK-NEXT: %[[SQ:.*]] = arith.mulf %[[DM]], %[[DM]]
// CHECK-NEXT: %[[SS:.*]] = nn.reduce sum "d0 d1 -> d0" %[[SQ]]
// CHECK-NEXT: fsdp.all_reduce sum %[[SS]] over ["tensor"] : tensor<4xf32>
// What f32 rounds away of eps is added too, as the kernels of whole rows take eps as a double.
// CHECK: %[[EPS:.*]] = arith.constant dense<9.99999974E-6> : tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = arith.addf %{{.*}}, %[[EPS]]
// CHECK-NEXT: %[[LOST:.*]] = arith.constant dense<2.52621247E-13> : tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = arith.addf %[[V1]], %[[LOST]]
// CHECK-NEXT: math.rsqrt %[[V2]]
// CHECK: %[[N:.*]] = arith.addf {{.*}} : tensor<4x3xf32>

// An RMS norm of it needs no mask.
// CHECK-NEXT: %[[NN:.*]] = arith.mulf %[[N]], %[[N]]
// CHECK-NEXT: %[[SSN:.*]] = nn.reduce sum "d0 d1 -> d0" %[[NN]]
// CHECK-NEXT: fsdp.all_reduce sum %[[SSN]] over ["tensor"] : tensor<4xf32>
// CHECK: math.rsqrt
// CHECK-NOT: fsdp.mask_padding

// Cumulative sums: of the gathered sums of parts those in front of this rank's count, or those behind it.
// CHECK: %[[M:.*]] = nn.reduce sum "d0 d1 -> d0" %[[Z:.*]] : tensor<4x3xf32> -> tensor<4xf32>
// CHECK-NEXT: %[[ROW:.*]] = nn.rearrange "d0 -> 1 d0" %[[M]]
// CHECK-NEXT: %[[ROWS:.*]] = fsdp.all_gather %[[ROW]] dim 0 over ["tensor"] : tensor<1x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT: %[[RANK:.*]] = fsdp.shard_offset of 4 over ["tensor"]
// CHECK-NEXT: %[[BEFORE:.*]] = fsdp.mask_samples %[[ROWS]], %[[RANK]] dim 0 fill 0.0
// CHECK-NEXT: %[[PREFIX:.*]] = nn.reduce sum "r d0 -> d0" %[[BEFORE]]
// CHECK-NEXT: %[[SCAN:.*]] = nn.scan_sum "b v" along "v" %[[Z]] exclusive : tensor<4x3xf32>
// CHECK-NEXT: %[[PREFIXES:.*]] = nn.repeat "d0 -> d0 d1" %[[PREFIX]]
// CHECK-NEXT: %[[SCANNED:.*]] = arith.addf %[[SCAN]], %[[PREFIXES]]
// CHECK-NEXT: fsdp.mask_padding %[[SCANNED]] dim 1 of 10 over ["tensor"] fill 0.0
// CHECK: %[[ROWS2:.*]] = fsdp.all_gather %{{.*}} dim 0 over ["tensor"] : tensor<1x4xf32> -> tensor<4x4xf32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[RANK]], %{{.*}}
// CHECK-NEXT: %[[UPTO:.*]] = fsdp.mask_samples %{{.*}}, %[[NEXT]] dim 0 fill 0.0
// CHECK: %[[ISBEHIND:.*]] = arith.cmpf oeq, %[[UPTO]]
// CHECK: arith.select %[[ISBEHIND]], %[[ROWS2]]
// CHECK: nn.scan_sum "b v" along "v" %[[Z]] reverse : tensor<4x3xf32>

// Backward: the scans in the other directions, then one sum per row for the RMS norm, two for the layer norm, one for the softmax.
// CHECK-COUNT-2: fsdp.all_gather %{{.*}} dim 0 over ["tensor"] {fsdp.structure = #fsdp.structure<backward>}
// CHECK-COUNT-3: fsdp.all_reduce sum %{{.*}} over ["tensor"] {fsdp.structure = #fsdp.structure<backward>} : tensor<4xf32>
// CHECK: nn.reduce sum "d0 d1 -> d1" {{.*}} : tensor<4x3xf32> -> tensor<3xf32>
// CHECK: fsdp.all_reduce sum %{{.*}} over ["tensor"] {fsdp.structure = #fsdp.structure<backward>} : tensor<4xf32>
// CHECK-NOT: over ["tensor"]
// CHECK: nn.einsum "bd,bv->dv"
// CHECK-LABEL: fsdp.segment @evaluate

// Numbers of rows are f32.
// BF16: fsdp.all_reduce max %{{.*}} over ["tensor"] : tensor<4xf32>
// BF16: %[[SUM:.*]] = fsdp.all_reduce sum %{{.*}} over ["tensor"] : tensor<4xf32>
// BF16: nn.repeat "d0 -> d0 d1" %[[SUM]] : tensor<4xf32> -> tensor<4x3xf32>
// BF16: arith.truncf {{.*}} : tensor<4x3xf32> to tensor<4x3xbf16>
// BF16: nn.scan_sum {{.*}} : tensor<4x3xf32>
// BF16-NOT: over ["tensor"] {{.*}} : tensor<4xbf16>

// EVEN: fsdp.all_reduce max
// EVEN-NOT: fsdp.mask_padding
// EVEN-LABEL: fsdp.segment @evaluate

// WHOLE: nn.argmax
// WHOLE: nn.softmax
// WHOLE: nn.layer_norm
// WHOLE: nn.rms_norm
// WHOLE: nn.scan_sum
// WHOLE: nn.rms_norm_grad
// WHOLE: nn.layer_norm_grad
// WHOLE-NOT: fsdp.shard_offset

fsdp.mesh @mesh <["fsdp"=2, "tensor"=4]>
fsdp.param @w : tensor<5x10xf32> unit "w" init <normal, 1.0>
fsdp.param @scale : tensor<10xf32> unit "norm" init <normal, 1.0>
fsdp.param @bias : tensor<10xf32> unit "norm" init <normal, 1.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x5xf32>
  %labels = fsdp.input "labels" sample_dim 0 : tensor<8xi32>
  %w = fsdp.read @w : tensor<5x10xf32>
  %y = nn.einsum "bd,dv->bv" %x, %w : (tensor<8x5xf32>, tensor<5x10xf32>) -> tensor<8x10xf32>
  %h = fsdp.constraint %y <@mesh, [{?}, {"tensor"}]> : tensor<8x10xf32>
  %guess = nn.argmax %h : tensor<8x10xf32> -> tensor<8xi32>
  %right = arith.cmpi eq, %guess, %labels : tensor<8xi32>
  %hits = arith.uitofp %right : tensor<8xi1> to tensor<8xf32>
  %all = nn.reduce sum "b ->" %hits : tensor<8xf32> -> tensor<f64>
  %count = arith.constant dense<8.0> : tensor<f64>
  fsdp.metric "accuracy" %all over %count
  %p = nn.softmax %h : tensor<8x10xf32>
  %scale = fsdp.read @scale : tensor<10xf32>
  %bias = fsdp.read @bias : tensor<10xf32>
  %n, %mean, %rstd = nn.layer_norm %p, %scale, %bias eps 1.0e-05 : tensor<8x10xf32>, tensor<10xf32> -> tensor<8xf32>
  %m, %rms = nn.rms_norm %n, %scale eps 1.0e-05 : tensor<8x10xf32>, tensor<10xf32> -> tensor<8xf32>
  %before = nn.scan_sum "b v" along "v" %m exclusive : tensor<8x10xf32>
  %behind = nn.scan_sum "b v" along "v" %m reverse : tensor<8x10xf32>
  %product = arith.mulf %before, %behind : tensor<8x10xf32>
  %sum = nn.reduce sum "b v ->" %product : tensor<8x10xf32> -> tensor<f64>
  fsdp.loss %sum over %count
}
