// RUN: fsdp-opt %s --fsdp-lower-prints --split-input-file | %{plain} | FileCheck %s

// Of what is finite the minimum, the maximum and the mean, and how many are not: rows first, then all in double.
// CHECK-LABEL: fsdp.step @train
// CHECK: %[[X:.*]] = fsdp.input "x"
// CHECK-NEXT: %[[SIZE:.*]] = math.absf %[[X]] {fsdp.report} : tensor<8x4xf32>
// CHECK-NEXT: %[[INFINITY:.*]] = arith.constant {fsdp.report} dense<0x7F800000> : tensor<8x4xf32>
// CHECK-NEXT: %[[FINITE:.*]] = arith.cmpf olt, %[[SIZE]], %[[INFINITY]]
// CHECK-NEXT: %[[NEGATED:.*]] = arith.negf %[[X]]
// CHECK-NEXT: %[[LEAST:.*]] = arith.constant {fsdp.report} dense<0xFF800000> : tensor<8x4xf32>
// CHECK-NEXT: %[[HERE:.*]] = arith.select %[[FINITE]], %[[NEGATED]], %[[LEAST]]
// CHECK-NEXT: %[[ROWS:.*]] = nn.reduce max "d0 d1 -> d0" %[[HERE]] {fsdp.report} : tensor<8x4xf32> -> tensor<8xf64>
// CHECK-NEXT: %[[ALL:.*]] = nn.reduce max "d0 ->" %[[ROWS]] {fsdp.report} : tensor<8xf64> -> tensor<f64>
// CHECK-NEXT: %[[MIN:.*]] = arith.negf %[[ALL]] {fsdp.report}
// CHECK: %[[MAX:.*]] = nn.reduce max "d0 ->"
// CHECK: %[[SUM:.*]] = nn.reduce sum "d0 ->"
// CHECK: %[[COUNT:.*]] = nn.reduce sum "d0 ->"
// CHECK: %[[NAN:.*]] = nn.reduce sum "d0 ->"
// CHECK: fsdp.metric "x.min" %[[MIN]] over
// CHECK: fsdp.metric "x.max" %[[MAX]] over
// CHECK: fsdp.metric "x.mean" %[[SUM]] over %[[COUNT]]
// CHECK: fsdp.metric "x.nan" %[[NAN]] over
// CHECK-NOT: fsdp.print
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  fsdp.print "x" %x : tensor<8x4xf32>
}

// -----

// Integers are finite, and are compared exactly; numbers of 16 bits are widened; a number is itself.
// CHECK-LABEL: fsdp.step @types
// CHECK: arith.sitofp %{{.*}} : tensor<8xi32> to tensor<8xf64>
// CHECK-NOT: arith.cmpf
// CHECK: fsdp.metric "ids.nan"
// CHECK: arith.extf %{{.*}} : tensor<8xbf16> to tensor<8xf32>
// CHECK: fsdp.metric "narrow.nan"
// CHECK-NOT: nn.reduce
// CHECK: fsdp.metric "number.check" %{{.*}} over %{{.*}} check 0 {fsdp.report}
fsdp.step @types train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<8xi32>
  %narrow = fsdp.input "x" sample_dim 0 : tensor<8xbf16>
  %number = arith.constant dense<3.0> : tensor<f32>
  fsdp.print "ids" %ids : tensor<8xi32>
  fsdp.print "narrow" %narrow : tensor<8xbf16>
  fsdp.check "number" %number : tensor<f32>
}

// -----

// In a checkpoint: its numbers become results, and metrics behind it, in order. Checks know their places.
// CHECK-LABEL: fsdp.step @regions
// CHECK: fsdp.metric "x.check" {{.*}} check 0 {fsdp.report}
// CHECK: %[[Y:.*]]:7 = fsdp.checkpoint selective : tensor<8x4xf32>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64> {
// CHECK: fsdp.yield
// CHECK: fsdp.metric "p.min" %[[Y]]#{{[0-9]+}} over
// CHECK: fsdp.metric "p.max"
// CHECK: fsdp.metric "p.mean" %[[Y]]#{{[0-9]+}} over %[[Y]]#{{[0-9]+}}
// CHECK: fsdp.metric "p.nan"
// CHECK: fsdp.metric "p.check" %[[Y]]#{{[0-9]+}} over {{.*}} check 1 {fsdp.report}
// CHECK: nn.reduce sum "b w ->" %[[Y]]#0
// CHECK: fsdp.metric "y.check" {{.*}} check 2 {fsdp.report}
fsdp.step @regions train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  fsdp.check "x" %x : tensor<8x4xf32>
  %y = fsdp.checkpoint selective : tensor<8x4xf32> {
    %p = arith.mulf %x, %x : tensor<8x4xf32>
    fsdp.print "p" %p : tensor<8x4xf32>
    fsdp.check "p" %p : tensor<8x4xf32>
    fsdp.yield %p : tensor<8x4xf32>
  }
  %sum = nn.reduce sum "b w ->" %y : tensor<8x4xf32> -> tensor<f64>
  fsdp.check "y" %y : tensor<8x4xf32>
}
