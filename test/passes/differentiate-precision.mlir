// The cotangent of a read has the type in which its gradient is reduced; what is computed in between has 16 bits.
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-mixed-precision --fsdp-differentiate | %{plain} | FileCheck %s
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-mixed-precision="reduce=bf16" --fsdp-differentiate | %{plain} | FileCheck %s --check-prefix=NARROW
// RUN: fsdp-opt %s --fsdp-to-local="precision=bf16 reduce-precision=bf16" | %{plain} | FileCheck %s --check-prefix=LOCAL

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @table : tensor<10x4xf32> unit "table" init <constant, 0.0>
fsdp.param @scale : tensor<4xf32> unit "norm" init <constant, 1.0>

// Losses and their cotangents are f32, logits and theirs bf16.
// CHECK: %[[D:.*]] = nn.cross_entropy_grad %{{.*}} : tensor<8x10xbf16>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
// CHECK: nn.einsum "bv,vd->bd" %[[D]], %{{.*}} : (tensor<8x10xbf16>, tensor<10x4xbf16>) -> tensor<8x4xbf16>
// A product of bf16 operands gives the f32 gradient at once; sums over rows are f32 as they are.
// CHECK: %[[LAST:.*]] = nn.einsum {{.*}} : (tensor<8x4xbf16>, tensor<8x10xbf16>) -> tensor<10x4xf32>
// CHECK: %{{.*}}, %[[SCALE:.*]] = nn.rms_norm_grad
// CHECK-NEXT: fsdp.gradient @scale, %[[SCALE]] : tensor<4xf32>
// CHECK: %[[FIRST:.*]] = nn.embedding_grad %{{.*}} : tensor<8xi32>, tensor<8x4xbf16> -> tensor<10x4xf32>
// CHECK-NEXT: %[[TABLE:.*]] = arith.addf %[[LAST]], %[[FIRST]] : tensor<10x4xf32>
// CHECK-NEXT: fsdp.gradient @table, %[[TABLE]] : tensor<10x4xf32>

// NARROW: %[[LAST:.*]] = nn.einsum {{.*}} : (tensor<8x4xbf16>, tensor<8x10xbf16>) -> tensor<10x4xbf16>
// NARROW: %{{.*}}, %[[SCALE:.*]] = nn.rms_norm_grad
// NARROW-NEXT: %[[CAST:.*]] = arith.truncf %[[SCALE]] : tensor<4xf32> to tensor<4xbf16>
// NARROW-NEXT: fsdp.gradient @scale, %[[CAST]] : tensor<4xbf16>
// NARROW: %[[WIDE:.*]] = nn.embedding_grad %{{.*}} -> tensor<10x4xf32>
// NARROW-NEXT: %[[FIRST:.*]] = arith.truncf %[[WIDE]] : tensor<10x4xf32> to tensor<10x4xbf16>
// NARROW-NEXT: arith.addf %[[LAST]], %[[FIRST]] : tensor<10x4xbf16>

// Partial sums are cast, then reduced; the shards of a tied weight are widened, then added.
// LOCAL: %[[A:.*]] = fsdp.reduce_scatter %{{.*}} : tensor<40xbf16> -> tensor<32xbf16>
// LOCAL-NEXT: %[[AWIDE:.*]] = arith.extf %[[A]]
// LOCAL: %[[B:.*]] = fsdp.reduce_scatter %{{.*}} : tensor<40xbf16> -> tensor<32xbf16>
// LOCAL-NEXT: nn.fused %[[B]], %[[AWIDE]]
// LOCAL: arith.extf
// LOCAL-NEXT: arith.addf %{{.*}} : tensor<32xf32>
fsdp.step @tied train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<8xi32>
  %table = fsdp.read @table : tensor<10x4xf32>
  %x = nn.embedding %table, %ids : tensor<10x4xf32>, tensor<8xi32> -> tensor<8x4xf32>
  %scale = fsdp.read @scale : tensor<4xf32>
  %y, %rstd = nn.rms_norm %x, %scale eps 1.0e-05 : tensor<8x4xf32>, tensor<4xf32> -> tensor<8xf32>
  %again = fsdp.read @table : tensor<10x4xf32>
  %logits = nn.einsum "bd,vd->bv" %y, %again : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %ids : tensor<8x10xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
  %sum = nn.reduce sum "b ->" %loss : tensor<8xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
