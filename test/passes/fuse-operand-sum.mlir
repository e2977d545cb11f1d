// The sum over the rows of an operand of a product, the gradient of a bias, is one kernel with that product, the gradient
// of its weight.
// RUN: fsdp-opt %s --fsdp-fuse --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --split-input-file | FileCheck %s --check-prefix=LAUNCHES

// In the place of the product, wherever the sum is; rows are widened before they are added.
// CHECK-LABEL: fsdp.segment @right
// CHECK:      %[[D:.*]] = nn.softmax
// CHECK-NOT:  nn.reduce
// CHECK:      %[[E:.*]] = nn.softmax
// CHECK-NEXT: %[[F:.*]]:2 = nn.fused %[[E]], %[[D]] {{.*}} : (tensor<2x8x4xbf16>, tensor<2x8x6xbf16>) -> (tensor<4x6xf32>, tensor<6xf32>) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<2x8x4xbf16>, %[[Y:.*]]: tensor<2x8x6xbf16>):
// CHECK-NEXT:   %[[P:.*]] = nn.einsum "bsi,bso->io" %[[X]], %[[Y]]
// CHECK-NEXT:   %[[W:.*]] = arith.extf %[[Y]]
// CHECK-NEXT:   %[[S:.*]] = nn.reduce sum "b s o -> o" %[[W]]
// CHECK-NEXT:   nn.yield %[[P]], %[[S]]
// CHECK:      fsdp.flatten %[[F]]#0, %[[F]]#1
// LAUNCHES-LABEL: fsdp.segment @right
// LAUNCHES: fsdp.launch "weight"
// LAUNCHES: nn.einsum
// LAUNCHES: nn.reduce
// LAUNCHES-NOT: nn.reduce
// LAUNCHES-LABEL: fsdp.segment @left
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @right train next [@right] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<2x8x6xbf16>
      %d = nn.softmax %g : tensor<2x8x6xbf16>
      %w = arith.extf %d : tensor<2x8x6xbf16> to tensor<2x8x6xf32>
      %b = nn.reduce sum "b s o -> o" %w {fsdp.structure = #fsdp.structure<"u" backward>} : tensor<2x8x6xf32> -> tensor<6xf32>
      %e = nn.softmax %x : tensor<2x8x4xbf16>
      %p = nn.einsum "bsi,bso->io" %e, %d {fsdp.structure = #fsdp.structure<"u" backward>} : (tensor<2x8x4xbf16>, tensor<2x8x6xbf16>) -> tensor<4x6xf32> loc("weight")
      %f = fsdp.flatten %p, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<30xf32>
      %n = fsdp.square_sum %f : tensor<30xf32>
    }
  }
}

// -----

// The left operand of a weight that lies the other way round, in f32, with a sum that comes later.
// CHECK-LABEL: fsdp.segment @left
// CHECK:      nn.fused
// CHECK-NEXT: ^bb0(%[[Y:.*]]: tensor<16x6xf32>, %[[X:.*]]: tensor<16x4xf32>):
// CHECK-NEXT:   %[[P:.*]] = nn.einsum "ro,ri->oi" %[[Y]], %[[X]]
// CHECK-NEXT:   %[[S:.*]] = nn.reduce sum "r o -> o" %[[Y]]
// CHECK-NEXT:   nn.yield %[[P]], %[[S]]
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @left train next [@left] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xf32>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x6xf32>
      %p = nn.einsum "ro,ri->oi" %g, %x : (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>
      %b = nn.reduce sum "r o -> o" %g : tensor<16x6xf32> -> tensor<6xf32>
      %f = fsdp.flatten %p, %b : (tensor<6x4xf32>, tensor<6xf32>) -> tensor<30xf32>
      %n = fsdp.square_sum %f : tensor<30xf32>
    }
  }
}

// -----

// Apart remain: a mean; a sum over columns; one of fewer rows than the product has; one that is needed before the product;
// sums of 16 bits; the sum of a matrix beside a product in 16 bits, of which a library would round it; a sum of another
// unit; the rows of a matrix of a batch.
// CHECK-LABEL: fsdp.segment @apart
// CHECK-NOT:  nn.fused {{.*}} -> (
// CHECK:      fsdp.output
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @apart evaluate next [@apart] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xf32>
      %h = fsdp.input "h" sample_dim 0 : tensor<16x4xbf16>
      %m = fsdp.input "m" sample_dim 0 : tensor<16x6xf32>
      %c = fsdp.input "c" sample_dim 0 : tensor<16x6xf32>
      %t = fsdp.input "t" sample_dim 0 : tensor<2x8x6xf32>
      %u = fsdp.input "u" sample_dim 0 : tensor<2x8x4xf32>
      %e = fsdp.input "e" sample_dim 0 : tensor<16x6xf32>
      %k = fsdp.input "k" sample_dim 0 : tensor<16x6xbf16>
      %o = fsdp.input "o" sample_dim 0 : tensor<16x6xf32>
      %pm = nn.einsum "ro,ri->oi" %m, %x : (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>
      %bm = nn.reduce mean "r o -> o" %m : tensor<16x6xf32> -> tensor<6xf32>
      %pc = nn.einsum "ro,ri->oi" %c, %x : (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>
      %bc = nn.reduce sum "r o -> r" %c : tensor<16x6xf32> -> tensor<16xf32>
      %pt = nn.einsum "bso,bsi->oi" %t, %u : (tensor<2x8x6xf32>, tensor<2x8x4xf32>) -> tensor<6x4xf32>
      %bt = nn.reduce sum "b s o -> s o" %t : tensor<2x8x6xf32> -> tensor<8x6xf32>
      %be = nn.reduce sum "r o -> o" %e : tensor<16x6xf32> -> tensor<6xf32>
      %se = nn.reduce sum "o ->" %be : tensor<6xf32> -> tensor<f32>
      %pe = nn.einsum "ro,ri->oi" %e, %x : (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>
      %pk = nn.einsum "ro,ri->oi" %k, %h : (tensor<16x6xbf16>, tensor<16x4xbf16>) -> tensor<6x4xbf16>
      %wk = arith.extf %k : tensor<16x6xbf16> to tensor<16x6xf32>
      %bk = nn.reduce sum "r o -> o" %wk : tensor<16x6xf32> -> tensor<6xf32>
      %nk = nn.reduce sum "r o -> o" %k : tensor<16x6xbf16> -> tensor<6xbf16>
      %po = nn.einsum "ro,ri->oi" %o, %x {fsdp.structure = #fsdp.structure<"u" backward>} : (tensor<16x6xf32>, tensor<16x4xf32>) -> tensor<6x4xf32>
      %bo = nn.reduce sum "r o -> o" %o {fsdp.structure = #fsdp.structure<"v" backward>} : tensor<16x6xf32> -> tensor<6xf32>
      %pb = nn.einsum "bso,bsi->boi" %t, %u : (tensor<2x8x6xf32>, tensor<2x8x4xf32>) -> tensor<2x6x4xf32>
      %bb = nn.reduce sum "b s o -> b o" %t : tensor<2x8x6xf32> -> tensor<2x6xf32>
      fsdp.output "y" %se
    }
  }
}
