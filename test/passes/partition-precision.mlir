// Two legs of a placement: shards are cast, then gathered; gradients are reduced in the type they have, and widened.
// RUN: fsdp-opt %s --fsdp-to-local="precision=bf16" | %{plain} | FileCheck %s
// RUN: fsdp-opt %s --fsdp-to-local="precision=bf16 reduce-precision=bf16" | %{plain} | FileCheck %s --check-prefix=NARROW
// RUN: fsdp-opt %s --fsdp-to-local="precision=bf16 strategy=ddp" | %{plain} | FileCheck %s --check-prefix=DDP
// RUN: fsdp-opt %s --fsdp-to-local="precision=bf16 shard=w:1;b:0" | %{plain} | FileCheck %s --check-prefix=DIMENSION
// RUN: fsdp-opt %s --fsdp-to-local="reduce-precision=bf16" | %{plain} | FileCheck %s --check-prefix=WIRE
// RUN: fsdp-opt %s --fsdp-to-scheduled="precision=bf16" | FileCheck %s --check-prefix=SCHEDULED

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x6xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<6xf32> unit "u" init <constant, 0.0>

// What is stored stays f32: 30 elements over two ranks, rounded up to 16.
// CHECK: fsdp.storage @u.flat : tensor<16xf32> flat
// CHECK: %[[SHARD:.*]] = fsdp.load @u.flat "parameter" : tensor<16xf32>
// CHECK-NEXT: %[[CAST:.*]] = arith.truncf %[[SHARD]] : tensor<16xf32> to tensor<16xbf16>
// CHECK-NEXT: %[[WHOLE:.*]] = fsdp.all_gather %[[CAST]] dim 0 over ["fsdp"] : tensor<16xbf16> -> tensor<30xbf16>
// CHECK-NEXT: fsdp.view %[[WHOLE]] at 0 : tensor<30xbf16> -> tensor<4x6xbf16>
// The gradient of the weight: bf16 operands, an f32 result, no cast before it is reduced.
// CHECK: %[[GRAD:.*]] = nn.einsum "bi,bo->io" {{.*}} : (tensor<4x4xbf16>, tensor<4x6xbf16>) -> tensor<4x6xf32>
// CHECK: %[[FLAT:.*]] = fsdp.flatten %[[GRAD]], %{{.*}} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<30xf32>
// CHECK-NEXT: %[[SUM:.*]] = fsdp.reduce_scatter %[[FLAT]] dim 0 over ["fsdp"] : tensor<30xf32> -> tensor<16xf32>
// CHECK: fsdp.optimizer_step {{.*}} @u.flat %{{.*}}, %[[SUM]]

// NARROW: %[[GRAD:.*]] = nn.einsum "bi,bo->io" {{.*}} -> tensor<4x6xbf16>
// NARROW: %[[FLAT:.*]] = fsdp.flatten %[[GRAD]], %{{.*}} : (tensor<4x6xbf16>, tensor<6xbf16>) -> tensor<30xbf16>
// NARROW-NEXT: %[[SUM:.*]] = fsdp.reduce_scatter %[[FLAT]] dim 0 over ["fsdp"] : tensor<30xbf16> -> tensor<16xbf16>
// NARROW-NEXT: %[[WIDE:.*]] = arith.extf %[[SUM]] : tensor<16xbf16> to tensor<16xf32>
// NARROW: fsdp.square_sum %[[WIDE]]
// NARROW: fsdp.optimizer_step {{.*}} @u.flat %{{.*}}, %[[WIDE]]

// A replicated unit is cast whole, once for each run of uses.
// DDP: %[[SHARD:.*]] = fsdp.load @u.replicated "parameter" : tensor<30xf32>
// DDP-NEXT: %[[CAST:.*]] = arith.truncf %[[SHARD]] : tensor<30xf32> to tensor<30xbf16>
// DDP-NEXT: fsdp.view %[[CAST]] at 0
// DDP: fsdp.all_reduce sum %{{.*}} : tensor<30xf32>

// DIMENSION: arith.truncf %{{.*}} : tensor<4x3xf32> to tensor<4x3xbf16>
// DIMENSION-NEXT: fsdp.all_gather %{{.*}} dim 1 over ["fsdp"] : tensor<4x3xbf16> -> tensor<4x6xbf16>
// DIMENSION: fsdp.reduce_scatter %{{.*}} dim 1 over ["fsdp"] : tensor<4x6xf32> -> tensor<4x3xf32>

// Compute in f32, gradients on the wire in bf16.
// WIRE: fsdp.all_gather %{{.*}} : tensor<16xf32> -> tensor<30xf32>
// WIRE: fsdp.reduce_scatter %{{.*}} : tensor<30xbf16> -> tensor<16xbf16>
// WIRE-NEXT: arith.extf

// The cast runs on the stream of gathers, right before the gather.
// SCHEDULED: fsdp.launch "u.flat.cast" on "gather"
// SCHEDULED: arith.truncf
// SCHEDULED: fsdp.launch "u.flat all_gather" on "gather"
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x6xf32>
  %b = fsdp.read @b : tensor<6xf32>
  %product = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %rows = nn.repeat "o -> b o" %b : tensor<6xf32> -> tensor<8x6xf32>
  %y = arith.addf %product, %rows : tensor<8x6xf32>
  %square = arith.mulf %y, %y : tensor<8x6xf32>
  %sum = nn.reduce sum "b o ->" %square : tensor<8x6xf32> -> tensor<f64>
  %weight = arith.constant dense<48.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
