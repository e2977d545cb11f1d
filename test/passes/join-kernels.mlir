// RUN: fsdp-opt %s --fsdp-join-kernels | FileCheck %s
// RUN: fsdp-opt %s --fsdp-join-kernels --fsdp-join-kernels > %t.twice.mlir
// RUN: fsdp-opt %s --fsdp-join-kernels | diff - %t.twice.mlir
// RUN: fsdp-opt %s --fsdp-join-kernels --fsdp-fuse --fsdp-schedule | FileCheck %s --check-prefix=PLACES

module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.program @all role {} {
  // The gradient of a norm adds the cotangent that reaches its operand past it, and the rows of the result.
  // CHECK-LABEL: fsdp.segment @residual
  // CHECK: %[[D:.*]] = math.exp
  // CHECK: %[[DX:.*]], %[[DS:.*]], %[[DB:.*]], %[[SUMS:.*]] = nn.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} plus %[[D]] {fsdp.structure = #fsdp.structure<"b" backward>}
  // CHECK-SAME: sums tensor<3xf32>
  // CHECK-NOT: arith.addf
  // CHECK-NOT: nn.reduce
  // CHECK: fsdp.flatten %[[DS]], %[[DB]], %[[SUMS]]
  // CHECK: nn.reduce sum "a b ->" %[[DX]]
  // All in one launch, in the place of the cotangent.
  // PLACES-LABEL: fsdp.segment @residual
  // PLACES: fsdp.launch "layer_norm_grad"
  // PLACES-NOT: arith.addf {{.*}} tensor<4x3xf32>
  // PLACES-LABEL: fsdp.segment @rms
  fsdp.segment @residual evaluate next [@residual, @rms, @apart, @units, @squares] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %s = arith.constant dense<1.0> : tensor<3xf32>
    %y, %m, %r = nn.layer_norm %x, %s, %s eps 0.1 : tensor<4x3xf32>, tensor<3xf32> -> tensor<4xf32>
    %d = math.exp %y : tensor<4x3xf32>
    %z = arith.mulf %d, %y : tensor<4x3xf32>
    %dx, %ds, %db = nn.layer_norm_grad %x, %s, %m, %r, %z {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %sum = arith.addf %d, %dx {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32>
    %rows = nn.reduce sum "a b -> b" %sum {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32> -> tensor<3xf32>
    %flat = fsdp.flatten %ds, %db, %rows : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<10xf32>
    %g = fsdp.reduce_scatter %flat dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<5xf32>
    %n = fsdp.square_sum %g : tensor<5xf32>
    %e = nn.reduce sum "a b ->" %sum : tensor<4x3xf32> -> tensor<f32>
    %w = arith.truncf %n : tensor<f64> to tensor<f32>
    %t = arith.addf %e, %w : tensor<f32>
    fsdp.output "y" %t
  }
  // An RMS norm, whose own gradient is the first operand of the addition.
  // CHECK-LABEL: fsdp.segment @rms
  // CHECK: nn.rms_norm_grad %{{.*}} plus %{{.*}} : tensor<4x3xbf16>, tensor<3xbf16>, tensor<4xf32> plus tensor<4x3xbf16>{{$}}
  // CHECK-NOT: arith.addf {{.*}} : tensor<4x3xbf16>
  fsdp.segment @rms evaluate next [@residual, @rms, @apart, @units, @squares] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %h = arith.truncf %x : tensor<4x3xf32> to tensor<4x3xbf16>
    %s = arith.constant dense<1.0> : tensor<3xbf16>
    %y, %r = nn.rms_norm %h, %s eps 0.1 : tensor<4x3xbf16>, tensor<3xbf16> -> tensor<4xf32>
    %dx, %ds = nn.rms_norm_grad %h, %s, %r, %y : tensor<4x3xbf16>, tensor<3xbf16>, tensor<4xf32>
    %sum = arith.addf %dx, %y : tensor<4x3xbf16>
    %e = nn.reduce sum "a b ->" %sum : tensor<4x3xbf16> -> tensor<f32>
    %f = nn.reduce sum "b ->" %ds : tensor<3xf32> -> tensor<f32>
    %t = arith.addf %e, %f : tensor<f32>
    fsdp.output "y" %t
  }
  // Not joined: a gradient with another user, a cotangent that nothing else takes, one that comes later, a broadcast.
  // CHECK-LABEL: fsdp.segment @apart
  // CHECK-NOT: plus
  // CHECK-COUNT-4: arith.addf {{.*}} : tensor<4x3xf32>
  // CHECK-NOT: plus
  // CHECK: fsdp.output
  fsdp.segment @apart evaluate next [@residual, @rms, @apart, @units, @squares] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %s = arith.constant dense<1.0> : tensor<3xf32>
    %y, %r = nn.rms_norm %x, %s eps 0.1 : tensor<4x3xf32>, tensor<3xf32> -> tensor<4xf32>
    %once = math.exp %x : tensor<4x3xf32>
    %row = nn.repeat "b -> a b" %s : tensor<3xf32> -> tensor<4x3xf32>
    %a:2 = nn.rms_norm_grad %x, %s, %r, %y : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %b:2 = nn.rms_norm_grad %x, %s, %r, %once : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %c:2 = nn.rms_norm_grad %x, %s, %r, %row : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %f:2 = nn.rms_norm_grad %x, %s, %r, %x : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %alone = math.tanh %y : tensor<4x3xf32>
    %late = math.exp %a#0 : tensor<4x3xf32>
    %p = arith.addf %a#0, %y : tensor<4x3xf32>
    %q = arith.addf %b#0, %alone : tensor<4x3xf32>
    %t = arith.addf %c#0, %late : tensor<4x3xf32>
    %u = arith.addf %f#0, %row : tensor<4x3xf32>
    %v = arith.mulf %p, %q : tensor<4x3xf32>
    %w = arith.mulf %t, %u : tensor<4x3xf32>
    %z = arith.mulf %w, %late : tensor<4x3xf32>
    %o = arith.mulf %v, %z : tensor<4x3xf32>
    %e = nn.reduce sum "a b ->" %o : tensor<4x3xf32> -> tensor<f32>
    fsdp.output "y" %e
  }
  // Rows that are the gradient of another unit are added up by the norm only where that gradient is not reduced.
  // CHECK-LABEL: fsdp.segment @units
  // CHECK: %[[A:.*]], %{{.*}} = nn.rms_norm_grad %{{.*}} plus
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = nn.rms_norm_grad %{{.*}} plus {{.*}} sums
  // CHECK: nn.reduce sum "a b -> b" %[[A]]
  // CHECK-NOT: nn.reduce sum "a b -> b"
  // CHECK: fsdp.output
  fsdp.segment @units evaluate next [@residual, @rms, @apart, @units, @squares] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %s = arith.constant dense<1.0> : tensor<3xf32>
    %y, %r = nn.rms_norm %x, %s eps 0.1 : tensor<4x3xf32>, tensor<3xf32> -> tensor<4xf32>
    %z = math.exp %y : tensor<4x3xf32>
    %a:2 = nn.rms_norm_grad %x, %s, %r, %y {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %b:2 = nn.rms_norm_grad %x, %s, %r, %z {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32>, tensor<3xf32>, tensor<4xf32>
    %p = arith.addf %a#0, %z {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32>
    %q = arith.addf %b#0, %y {fsdp.structure = #fsdp.structure<"b" backward>} : tensor<4x3xf32>
    %ra = nn.reduce sum "a b -> b" %p {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<4x3xf32> -> tensor<3xf32>
    %rb = nn.reduce sum "a b -> b" %q {fsdp.structure = #fsdp.structure<"a" backward>} : tensor<4x3xf32> -> tensor<3xf32>
    %half = arith.constant dense<0.5> : tensor<3xf32>
    %scaled = arith.mulf %ra, %half : tensor<3xf32>
    %flat = fsdp.flatten %scaled, %a#1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
    %g = fsdp.reduce_scatter %flat dim 0 over ["fsdp"] : tensor<6xf32> -> tensor<3xf32>
    %all = arith.addf %g, %rb : tensor<3xf32>
    %more = arith.mulf %all, %b#1 : tensor<3xf32>
    %u = arith.mulf %p, %q : tensor<4x3xf32>
    %e = nn.reduce sum "b ->" %more : tensor<3xf32> -> tensor<f32>
    %f = nn.reduce sum "a b ->" %u : tensor<4x3xf32> -> tensor<f32>
    %t = arith.addf %e, %f : tensor<f32>
    fsdp.output "y" %t
  }
  // Squares of shards are added up by one launch, those that are reduced last by another; other terms are added to them.
  // CHECK-LABEL: fsdp.segment @squares
  // CHECK: %[[G:.*]] = fsdp.reduce_scatter
  // CHECK: %[[H:.*]] = fsdp.reduce_scatter
  // CHECK: %[[OTHER:.*]] = arith.extf
  // CHECK-NEXT: %[[FIRST:.*]] = fsdp.square_sum %[[X:.*]], %[[G]], %[[Y:.*]] : tensor<8xf32>, tensor<4xf32>, tensor<8xf32>
  // CHECK-NEXT: %[[LAST:.*]] = fsdp.square_sum %[[H]] : tensor<4xf32>
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[FIRST]], %[[LAST]] : tensor<f64>
  // CHECK-NEXT: %[[TOTAL:.*]] = arith.addf %[[SUM]], %[[OTHER]] : tensor<f64>
  // CHECK-NEXT: math.sqrt %[[TOTAL]]
  // A sum that is used elsewhere too, and one alone, stay.
  // CHECK: %[[P:.*]] = fsdp.square_sum %[[X]]
  // CHECK-NEXT: %[[Q:.*]] = fsdp.square_sum %[[Y]]
  // CHECK-NEXT: arith.addf %[[P]], %[[Q]]
  fsdp.segment @squares evaluate next [@residual, @rms, @apart, @units, @squares] {
    %in = fsdp.input "x" sample_dim 0 : tensor<4x2xf32>
    %x = nn.rearrange "a b -> (a b)" %in : tensor<4x2xf32> -> tensor<8xf32>
    %y = math.exp %x : tensor<8xf32>
    %g = fsdp.reduce_scatter %x dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<4xf32>
    %h = fsdp.reduce_scatter %y dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<4xf32>
    %one = nn.reduce sum "a ->" %x : tensor<8xf32> -> tensor<f32>
    %other = arith.extf %one : tensor<f32> to tensor<f64>
    %a = fsdp.square_sum %x : tensor<8xf32>
    %b = fsdp.square_sum %h : tensor<4xf32>
    %s = arith.addf %a, %b : tensor<f64>
    %c = fsdp.square_sum %g : tensor<4xf32>
    %t = arith.addf %s, %other : tensor<f64>
    %u = arith.addf %t, %c : tensor<f64>
    %d = fsdp.square_sum %y : tensor<8xf32>
    %total = arith.addf %u, %d : tensor<f64>
    %root = math.sqrt %total : tensor<f64>
    %p = fsdp.square_sum %x : tensor<8xf32>
    %q = fsdp.square_sum %y : tensor<8xf32>
    %v = arith.addf %p, %q : tensor<f64>
    %w = arith.mulf %v, %p : tensor<f64>
    %z = arith.addf %w, %root : tensor<f64>
    %out = arith.truncf %z : tensor<f64> to tensor<f32>
    fsdp.output "y" %out
  }
}
}
