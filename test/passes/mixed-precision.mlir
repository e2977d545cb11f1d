// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-mixed-precision | FileCheck %s
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-mixed-precision="compute=f32 reduce=bf16" | FileCheck %s --check-prefix=WIRE
// RUN: fsdp-opt %s --fsdp-shard-parameters --fsdp-mixed-precision="compute=f32 reduce=f32" | FileCheck %s --check-prefix=NONE

// What is stored stays f32; the legs of the placements say the rest.
// CHECK: fsdp.param @w : tensor<4x3xf32> unit "u" {{.*}}gather = bf16, reduce = f32
// WIRE: fsdp.param @w : tensor<4x3xf32> unit "u" {{.*}}gather = f32, reduce = bf16
// WIRE: fsdp.read @w : tensor<4x3xf32>
// WIRE-NEXT: nn.einsum "bi,io->bo" %{{.*}} : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
// NONE: fsdp.param @w : tensor<4x3xf32> unit "u" {{.*}}gather = f32, reduce = f32
// NONE: fsdp.read @w : tensor<4x3xf32>
// NONE-NEXT: nn.einsum "bi,io->bo" %{{.*}} : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x3xf32> unit "u" init <constant, 0.0>
fsdp.param @b : tensor<3xf32> unit "u" init <constant, 0.0>
fsdp.param @table : tensor<10x4xf32> unit "t" init <constant, 0.0>

// An input is cast where it meets a product, once. Constants that are exact in bf16 are bf16. Sums are f32 or f64.
// CHECK-LABEL: fsdp.step @products
// CHECK: %[[X:.*]] = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
// CHECK: %[[W:.*]] = fsdp.read @w : tensor<4x3xbf16>
// CHECK: %[[XCAST:.*]] = arith.truncf %[[X]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK: %[[Y:.*]] = nn.einsum "bi,io->bo" %[[XCAST]], %[[W]] : (tensor<8x4xbf16>, tensor<4x3xbf16>) -> tensor<8x3xbf16>
// CHECK: %[[B:.*]] = fsdp.read @b : tensor<3xbf16>
// CHECK: %[[ROWS:.*]] = nn.repeat "o -> b o" %[[B]] : tensor<3xbf16> -> tensor<8x3xbf16>
// CHECK: %[[SUM:.*]] = arith.addf %[[Y]], %[[ROWS]] : tensor<8x3xbf16>
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<8x3xbf16>
// CHECK: %[[HALVED:.*]] = arith.mulf %[[SUM]], %[[HALF]] : tensor<8x3xbf16>
// CHECK: arith.cmpf ogt, %[[HALVED]], %{{.*}} : tensor<8x3xbf16>
// CHECK-NOT: arith.truncf %[[X]]
// CHECK: nn.einsum "bi,io->bo" %[[XCAST]]
// CHECK: nn.reduce sum "b o -> o" %[[HALVED]] : tensor<8x3xbf16> -> tensor<3xf32>
// CHECK: nn.reduce max "b o -> o" %[[HALVED]] : tensor<8x3xbf16> -> tensor<3xbf16>
// CHECK: nn.reduce sum "b o ->" %{{.*}} : tensor<8x3xbf16> -> tensor<f64>
fsdp.step @products evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x3xf32>
  %y = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %b = fsdp.read @b : tensor<3xf32>
  %rows = nn.repeat "o -> b o" %b : tensor<3xf32> -> tensor<8x3xf32>
  %sum = arith.addf %y, %rows : tensor<8x3xf32>
  %half = arith.constant dense<0.5> : tensor<8x3xf32>
  %halved = arith.mulf %sum, %half : tensor<8x3xf32>
  %positive = arith.cmpf ogt, %halved, %half : tensor<8x3xf32>
  %again = nn.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %rowSum = nn.reduce sum "b o -> o" %halved : tensor<8x3xf32> -> tensor<3xf32>
  %rowMax = nn.reduce max "b o -> o" %halved : tensor<8x3xf32> -> tensor<3xf32>
  %total = nn.reduce sum "b o ->" %again : tensor<8x3xf32> -> tensor<f64>
}

// Elementwise ops have the widest type of their operands, so what meets an f32 input is f32; a constant that
// bf16 cannot hold makes its op f32 inside, and bf16 again after it.
// CHECK-LABEL: fsdp.step @elementwise
// CHECK: %[[Y:.*]] = fsdp.input "y"
// CHECK: %[[B:.*]] = fsdp.read @b : tensor<3xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[B]] : tensor<3xbf16> to tensor<3xf32>
// CHECK: arith.subf %[[WIDE]], %[[Y]] : tensor<3xf32>
// CHECK: %[[C:.*]] = arith.constant dense<4.471500e-02> : tensor<3xf32>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[WIDE]], %[[C]] : tensor<3xf32>
// CHECK: %[[NARROW:.*]] = arith.truncf %[[SCALED]] : tensor<3xf32> to tensor<3xbf16>
// CHECK: arith.addf %[[NARROW]], %[[B]] : tensor<3xbf16>
fsdp.step @elementwise evaluate {
  %y = fsdp.input "y" sample_dim 0 : tensor<3xf32>
  %b = fsdp.read @b : tensor<3xf32>
  %difference = arith.subf %b, %y : tensor<3xf32>
  %c = arith.constant dense<0.044715> : tensor<3xf32>
  %scaled = arith.mulf %b, %c : tensor<3xf32>
  %sum = arith.addf %scaled, %b : tensor<3xf32>
}

// Casts of the model give what they gave.
// CHECK-LABEL: fsdp.step @casts
// CHECK: %[[B:.*]] = fsdp.read @b : tensor<3xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[B]] : tensor<3xbf16> to tensor<3xf32>
// CHECK-NEXT: %[[NARROW:.*]] = arith.truncf %[[WIDE]] : tensor<3xf32> to tensor<3xbf16>
// CHECK-NEXT: arith.negf %[[NARROW]] : tensor<3xbf16>
// CHECK-NEXT: arith.extf %[[B]] : tensor<3xbf16> to tensor<3xf64>
// CHECK-NEXT: arith.truncf %[[WIDE]] : tensor<3xf32> to tensor<3xf16>
fsdp.step @casts evaluate {
  %b = fsdp.read @b : tensor<3xf32>
  %narrow = arith.truncf %b : tensor<3xf32> to tensor<3xbf16>
  %negative = arith.negf %narrow : tensor<3xbf16>
  %double = arith.extf %b : tensor<3xf32> to tensor<3xf64>
  %half = arith.truncf %b : tensor<3xf32> to tensor<3xf16>
  %both = arith.negf %double : tensor<3xf64>
  %other = arith.negf %half : tensor<3xf16>
}

// Row ops: bf16 in and out; statistics, log-sum-exps and losses are f32. A norm of f32 rows stays one.
// CHECK-LABEL: fsdp.step @rows
// CHECK: %[[E:.*]] = nn.embedding %{{.*}} : tensor<10x4xbf16>, tensor<8xi32> -> tensor<8x4xbf16>
// CHECK: nn.softmax %[[E]] : tensor<8x4xbf16>
// CHECK: nn.layer_norm %[[E]], %{{.*}} : tensor<8x4xbf16>, tensor<4xbf16> -> tensor<8xf32>
// CHECK: nn.rms_norm %{{.*}} : tensor<8x4xf32>, tensor<4xf32> -> tensor<8xf32>
// CHECK: %[[LOSS:.*]], %{{.*}} = nn.cross_entropy %[[E]], %{{.*}} : tensor<8x4xbf16>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
// CHECK: nn.argmax %[[E]] : tensor<8x4xbf16> -> tensor<8xi32>
// CHECK: nn.attention %{{.*}} : (tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>) -> (tensor<1x1x8x4xbf16>, tensor<1x1x8xf32>)
// CHECK: nn.attention {{.*}} documents : (tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>, tensor<1x8xi32>) -> (tensor<1x1x8x4xbf16>, tensor<1x1x8xf32>)
// The bias of attention is f32, as the sums that it is added to.
// CHECK: %[[BIAS:.*]] = arith.extf %{{.*}} : tensor<1x8x8xbf16> to tensor<1x8x8xf32>
// CHECK: nn.attention {{.*}}, %[[BIAS]] scale 5.000000e-01 bias : (tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>, tensor<1x1x8x4xbf16>, tensor<1x8x8xf32>) -> (tensor<1x1x8x4xbf16>, tensor<1x1x8xf32>)
// CHECK: nn.attention {{.*}}, %[[ZEROS:.*]] scale 5.000000e-01 bias : {{.*}}, tensor<1x8x8xf32>) -> (tensor<1x1x8x4xbf16>, tensor<1x1x8xf32>)
// CHECK: nn.scan_sum "t k" along "t" %[[E]] reverse : tensor<8x4xbf16>
// CHECK: nn.scan_sum "t k" along "k" %{{.*}} : tensor<8x4xf32>
// CHECK: nn.concat %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
fsdp.step @rows evaluate {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<8xi32>
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %table = fsdp.read @table : tensor<10x4xf32>
  %e = nn.embedding %table, %ids : tensor<10x4xf32>, tensor<8xi32> -> tensor<8x4xf32>
  %row = nn.slice %table dim 0 start 0 : tensor<10x4xf32> -> tensor<1x4xf32>
  %scale = nn.rearrange "1 d -> d" %row : tensor<1x4xf32> -> tensor<4xf32>
  %soft = nn.softmax %e : tensor<8x4xf32>
  %y, %mean, %rstd = nn.layer_norm %e, %scale, %scale eps 1.0e-05 : tensor<8x4xf32>, tensor<4xf32> -> tensor<8xf32>
  %z, %r = nn.rms_norm %x, %scale eps 1.0e-05 : tensor<8x4xf32>, tensor<4xf32> -> tensor<8xf32>
  %loss, %lse = nn.cross_entropy %e, %ids : tensor<8x4xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
  %best = nn.argmax %e : tensor<8x4xf32> -> tensor<8xi32>
  %q = nn.rearrange "t k -> 1 1 t k" %z : tensor<8x4xf32> -> tensor<1x1x8x4xf32>
  %k = nn.rearrange "t k -> 1 1 t k" %e : tensor<8x4xf32> -> tensor<1x1x8x4xf32>
  %a, %al = nn.attention %q, %k, %k scale 0.5 : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
  %document = nn.rearrange "t -> 1 t" %ids : tensor<8xi32> -> tensor<1x8xi32>
  %d, %dl = nn.attention %q, %k, %k, %document scale 0.5 documents : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x8xi32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
  %products = nn.einsum "tk,sk->ts" %e, %e : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %bias = nn.rearrange "t s -> 1 t s" %products : tensor<8x8xf32> -> tensor<1x8x8xf32>
  %f, %fl = nn.attention %q, %k, %k, %bias scale 0.5 bias : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x8x8xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
  %zeros = arith.constant dense<0.0> : tensor<1x8x8xf32>
  %g, %gl = nn.attention %q, %k, %k, %zeros scale 0.5 bias : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x8x8xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>)
  %narrow = nn.scan_sum "t k" along "t" %e reverse : tensor<8x4xf32>
  %wide = nn.scan_sum "t k" along "k" %x : tensor<8x4xf32>
  %both = nn.concat %z, %e dim 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
}

// An op that the pass knows nothing of keeps its types.
// CHECK-LABEL: fsdp.step @others
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<bf16> to tensor<f32>
// CHECK: fsdp.output "value" %[[WIDE]]
fsdp.step @others evaluate {
  %b = fsdp.read @b : tensor<3xf32>
  %largest = nn.reduce max "o ->" %b : tensor<3xf32> -> tensor<f32>
  fsdp.output "value" %largest
}
