// RUN: fsdp-opt %s --fsdp-chunk-loss=chunks=2 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-chunk-loss=chunks=3 | FileCheck %s --check-prefix=THREE
// RUN: fsdp-opt %s --fsdp-chunk-loss=chunks=1 | FileCheck %s --check-prefix=ONE
// RUN: fsdp-opt %s --fsdp-chunk-loss=chunks=2 --fsdp-fuse | FileCheck %s --check-prefix=FUSED

// Rows are samples here. A chunk's forward and backward stand together, so its logits are dead before the next chunk's exist; a
// bias and a constant of the shape of the logits are cut as well. What has rows leaves as a concatenation, what is summed over
// rows as a sum; the loss itself is reduced at once, behind all chunks.
// CHECK-LABEL: fsdp.segment @train
// CHECK: %[[X:.*]] = fsdp.input "x"
// CHECK: %[[LABELS:.*]] = fsdp.input "label"
// CHECK: %[[D:.*]] = nn.repeat "-> b"
// CHECK-NOT: tensor<4x10xf32>
// CHECK: %[[X0:.*]] = nn.slice %[[X]] dim 0 start 0 : tensor<4x3xf32> -> tensor<2x3xf32>
// CHECK: nn.einsum "bi,iv->bv" %[[X0]]
// CHECK: nn.repeat "v -> b v" {{.*}} -> tensor<2x10xf32>
// CHECK: %[[SCALE:.*]] = arith.constant dense<5.000000e-01> : tensor<2x10xf32>
// CHECK: %[[L0:.*]] = arith.mulf {{.*}}, %[[SCALE]] : tensor<2x10xf32>
// CHECK: %[[LABELS0:.*]] = nn.slice %[[LABELS]] dim 0 start 0
// CHECK: %[[LOSS0:.*]], %[[LSE0:.*]] = nn.cross_entropy %[[L0]], %[[LABELS0]]
// CHECK: %[[GUESS0:.*]] = nn.argmax %[[L0]]
// CHECK: %[[D0:.*]] = nn.slice %[[D]] dim 0 start 0
// CHECK: nn.cross_entropy_grad %[[L0]], %[[LABELS0]], %[[LSE0]], %[[D0]]
// CHECK: %[[DX0:.*]] = nn.einsum "bv,iv->bi"
// CHECK: %[[DW0:.*]] = nn.einsum "bi,bv->iv" %[[X0]]
// CHECK: nn.slice %[[X]] dim 0 start 2
// CHECK: %[[LOSS1:.*]], %{{.*}} = nn.cross_entropy
// CHECK: %[[GUESS1:.*]] = nn.argmax
// CHECK: %[[DX1:.*]] = nn.einsum "bv,iv->bi"
// CHECK: %[[DW1:.*]] = nn.einsum "bi,bv->iv"
// CHECK: %[[DW:.*]] = arith.addf %[[DW0]], %[[DW1]]
// CHECK: %[[LOSS:.*]] = nn.concat %[[LOSS0]], %[[LOSS1]] dim 0
// CHECK: nn.concat %[[GUESS0]], %[[GUESS1]] dim 0
// CHECK: nn.concat %[[DX0]], %[[DX1]] dim 0
// CHECK: nn.reduce sum "b ->" %[[LOSS]]
// CHECK: nn.reduce sum "i v ->" %[[DW]]

// Three chunks of four rows have two, one and one.
// THREE: nn.slice {{.*}} start 0 : tensor<4x3xf32> -> tensor<2x3xf32>
// THREE: nn.slice {{.*}} start 2 : tensor<4x3xf32> -> tensor<1x3xf32>
// THREE: nn.slice {{.*}} start 3 : tensor<4x3xf32> -> tensor<1x3xf32>

// ONE-NOT: nn.slice

// Each product is added up before the next one is computed.
// FUSED: nn.einsum "bi,bv->iv"
// FUSED: nn.einsum "bi,bv->iv"
// FUSED: arith.addf
// FUSED-NOT: nn.einsum "bi,bv->iv"

fsdp.mesh @mesh <["fsdp"=1]>
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x3xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    %w = fsdp.input "w" sample_dim 0 : tensor<3x10xf32>
    %b = fsdp.input "b" sample_dim 0 : tensor<10xf32>
    %product = nn.einsum "bi,iv->bv" %x, %w : (tensor<4x3xf32>, tensor<3x10xf32>) -> tensor<4x10xf32>
    %bias = nn.repeat "v -> b v" %b : tensor<10xf32> -> tensor<4x10xf32>
    %sum = arith.addf %product, %bias : tensor<4x10xf32>
    %half = arith.constant dense<0.5> : tensor<4x10xf32>
    %logits = arith.mulf %sum, %half : tensor<4x10xf32>
    %loss, %lse = nn.cross_entropy %logits, %label : tensor<4x10xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %total = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f64>
    %guess = nn.argmax %logits : tensor<4x10xf32> -> tensor<4xi32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %d = nn.repeat "-> b" %one : tensor<f32> -> tensor<4xf32>
    %dlogits = nn.cross_entropy_grad %logits, %label, %lse, %d : tensor<4x10xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %dx = nn.einsum "bv,iv->bi" %dlogits, %w : (tensor<4x10xf32>, tensor<3x10xf32>) -> tensor<4x3xf32>
    %dw = nn.einsum "bi,bv->iv" %x, %dlogits : (tensor<4x3xf32>, tensor<4x10xf32>) -> tensor<3x10xf32>
    %out = arith.truncf %total : tensor<f64> to tensor<f32>
    fsdp.output "loss" %out
    %squares = nn.reduce sum "i v ->" %dw : tensor<3x10xf32> -> tensor<f32>
    fsdp.output "dw" %squares
    %rows = nn.reduce sum "b i ->" %dx : tensor<4x3xf32> -> tensor<f32>
    fsdp.output "dx" %rows
    %guesses = arith.sitofp %guess : tensor<4xi32> to tensor<4xf32>
    %right = nn.reduce sum "b ->" %guesses : tensor<4xf32> -> tensor<f32>
    fsdp.output "guess" %right
  }
}
