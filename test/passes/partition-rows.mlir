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

// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[H:.*]] = nn.einsum "bd,dv->bv" {{.*}} -> tensor<4x3xf32>

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
