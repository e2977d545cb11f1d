// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt --mlir-print-op-generic %s | fsdp-opt | FileCheck %s

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<8x12x16x64xf32>, %k: tensor<8x4x16x64xf32>, %long: tensor<8x1x20x64xf32>,
                     %x: tensor<5x6xf64>) {
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 causal : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  %out, %lse = nn.attention %q, %k, %k scale 0.125 causal : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[OUT]], %[[LSE]], %{{.*}} scale 1.250000e-01 causal : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
  %0:3 = nn.attention_grad %q, %k, %k, %out, %lse, %q scale 0.125 causal : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
  // More keys than queries; one group for all heads. The usual order need not be written.
  // CHECK: nn.attention %{{.*}} scale 1.000000e+00 : (tensor<8x12x16x64xf32>, tensor<8x1x20x64xf32>, tensor<8x1x20x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  %1:2 = nn.attention "b h t d" %q, %long, %long scale 1.0 : (tensor<8x12x16x64xf32>, tensor<8x1x20x64xf32>, tensor<8x1x20x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  // CHECK: %[[TURNED:.*]] = nn.rope %{{.*}} dim 0 theta 1.000000e+04 : tensor<5x6xf64>
  %2 = nn.rope %x dim 0 theta 1.0e+04 : tensor<5x6xf64>
  // CHECK: nn.rope %[[TURNED]] dim 0 theta 1.000000e+04 inverse : tensor<5x6xf64>
  %3 = nn.rope %2 dim 0 theta 1.0e+04 inverse : tensor<5x6xf64>
  // CHECK: nn.rope %{{.*}} dim 0 theta 1.000000e+04 factor 4.000000e+00 : tensor<5x6xf64>
  %4 = nn.rope %2 dim 0 theta 1.0e+04 factor 4.0 : tensor<5x6xf64>
  // CHECK: nn.rope %{{.*}} dim 0 theta 1.000000e+04 factor 4.000000e+00 ramp index from 2.000000e+00 to 5.000000e-01 magnitude 1.200000e+00 inverse : tensor<5x6xf64>
  %5 = nn.rope %2 dim 0 theta 1.0e+04 factor 4.0 ramp index from 2.0 to 0.5 magnitude 1.2 inverse : tensor<5x6xf64>
  // CHECK: nn.rope %{{.*}} dim 0 theta 1.000000e+04 factor 8.000000e+00 ramp rate from 1.000000e-03 to 4.000000e-03 : tensor<5x6xf64>
  %6 = nn.rope %2 dim 0 theta 1.0e+04 factor 8.0 ramp rate from 1.0e-03 to 4.0e-03 : tensor<5x6xf64>
  return
}

// CHECK-LABEL: func.func @orders
func.func @orders(%q: tensor<8x16x12x64xbf16>, %k: tensor<8x20x4x64xbf16>, %all: tensor<8x16x3x12x64xf32>,
                  %mixed: tensor<3x16x12x8x64xf32>) {
  // CHECK: nn.attention "b t h d" %{{.*}} scale 1.000000e+00 : (tensor<8x16x12x64xbf16>, tensor<8x20x4x64xbf16>, tensor<8x20x4x64xbf16>) -> (tensor<8x16x12x64xbf16>, tensor<8x12x16xf32>)
  %0:2 = nn.attention "b t h d" %q, %k, %k scale 1.0 : (tensor<8x16x12x64xbf16>, tensor<8x20x4x64xbf16>, tensor<8x20x4x64xbf16>) -> (tensor<8x16x12x64xbf16>, tensor<8x12x16xf32>)
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention "b t n h d" %{{.*}} scale 1.000000e+00 : (tensor<8x16x3x12x64xf32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  %out, %lse = nn.attention "b t n h d" %all scale 1.0 : (tensor<8x16x3x12x64xf32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad "b t n h d" %{{.*}}, %[[OUT]], %[[LSE]], %[[OUT]] scale 1.000000e+00 : (tensor<8x16x3x12x64xf32>, tensor<8x16x12x64xf32>, tensor<8x12x16xf32>, tensor<8x16x12x64xf32>) -> tensor<8x16x3x12x64xf32>
  %1 = nn.attention_grad "b t n h d" %all, %out, %lse, %out scale 1.0 : (tensor<8x16x3x12x64xf32>, tensor<8x16x12x64xf32>, tensor<8x12x16xf32>, tensor<8x16x12x64xf32>) -> tensor<8x16x3x12x64xf32>
  // CHECK: nn.attention "n t h b d" %{{.*}} -> (tensor<16x12x8x64xf32>, tensor<8x12x16xf32>)
  %2:2 = nn.attention "n t h b d" %mixed scale 1.0 : (tensor<3x16x12x8x64xf32>) -> (tensor<16x12x8x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.rope %{{.*}} dim 1 theta 1.000000e+04 : tensor<8x16x12x64xbf16>
  %3 = nn.rope %q dim 1 theta 1.0e+04 : tensor<8x16x12x64xbf16>
  return
}

// CHECK-LABEL: func.func @bias
func.func @bias(%q: tensor<8x12x16x64xbf16>, %k: tensor<8x4x20x64xbf16>, %all: tensor<8x16x3x12x64xf32>,
                %heads: tensor<12x16x20xf32>, %one: tensor<1x16x16xf32>, %ids: tensor<8x16xi32>) {
  // One bias for each head; it is f32 where the rest has 16 bits.
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 bias : (tensor<8x12x16x64xbf16>, tensor<8x4x20x64xbf16>, tensor<8x4x20x64xbf16>, tensor<12x16x20xf32>) -> (tensor<8x12x16x64xbf16>, tensor<8x12x16xf32>)
  %out, %lse = nn.attention %q, %k, %k, %heads scale 1.0 bias : (tensor<8x12x16x64xbf16>, tensor<8x4x20x64xbf16>, tensor<8x4x20x64xbf16>, tensor<12x16x20xf32>) -> (tensor<8x12x16x64xbf16>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad {{.*}}, %[[OUT]], %[[LSE]], %[[OUT]] scale 1.000000e+00 bias : {{.*}} -> (tensor<8x12x16x64xbf16>, tensor<8x4x20x64xbf16>, tensor<8x4x20x64xbf16>)
  %0:3 = nn.attention_grad %q, %k, %k, %heads, %out, %lse, %out scale 1.0 bias : (tensor<8x12x16x64xbf16>, tensor<8x4x20x64xbf16>, tensor<8x4x20x64xbf16>, tensor<12x16x20xf32>, tensor<8x12x16x64xbf16>, tensor<8x12x16xf32>, tensor<8x12x16x64xbf16>) -> (tensor<8x12x16x64xbf16>, tensor<8x4x20x64xbf16>, tensor<8x4x20x64xbf16>)
  // CHECK: nn.attention_bias_grad {{.*}}, %[[OUT]], %[[LSE]], %[[OUT]] scale 1.000000e+00 : {{.*}} -> tensor<12x16x20xf32>
  %1 = nn.attention_bias_grad %q, %k, %k, %heads, %out, %lse, %out scale 1.0 : (tensor<8x12x16x64xbf16>, tensor<8x4x20x64xbf16>, tensor<8x4x20x64xbf16>, tensor<12x16x20xf32>, tensor<8x12x16x64xbf16>, tensor<8x12x16xf32>, tensor<8x12x16x64xbf16>) -> tensor<12x16x20xf32>
  // One for all heads, and the other options.
  // CHECK: nn.attention "b t n h d" %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal window 4 softcap 5.000000e+01 bias documents : (tensor<8x16x3x12x64xf32>, tensor<1x16x16xf32>, tensor<8x16xi32>)
  %2:2 = nn.attention "b t n h d" %all, %one, %ids scale 1.0 causal window 4 softcap 50.0 bias documents : (tensor<8x16x3x12x64xf32>, tensor<1x16x16xf32>, tensor<8x16xi32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_bias_grad "b t n h d" {{.*}} scale 1.000000e+00 causal window 4 softcap 5.000000e+01 documents : {{.*}} -> tensor<1x16x16xf32>
  %3 = nn.attention_bias_grad "b t n h d" %all, %one, %ids, %2#0, %2#1, %2#0 scale 1.0 causal window 4 softcap 50.0 documents : (tensor<8x16x3x12x64xf32>, tensor<1x16x16xf32>, tensor<8x16xi32>, tensor<8x16x12x64xf32>, tensor<8x12x16xf32>, tensor<8x16x12x64xf32>) -> tensor<1x16x16xf32>
  return
}

// CHECK-LABEL: func.func @options
func.func @options(%q: tensor<8x16x12x64xf32>, %k: tensor<8x20x4x64xf32>, %all: tensor<8x16x3x12x64xf32>,
                   %long: tensor<8x20xi32>, %ids: tensor<8x16xi32>) {
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention "b t h d" %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal window 4 softcap 5.000000e+01 documents : (tensor<8x16x12x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20xi32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  %out, %lse = nn.attention "b t h d" %q, %k, %k, %long scale 1.0 causal window 4 softcap 50.0 documents : (tensor<8x16x12x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20xi32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad "b t h d" {{.*}} scale 1.000000e+00 causal window 4 softcap 5.000000e+01 documents : {{.*}} -> (tensor<8x16x12x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20x4x64xf32>)
  %0:3 = nn.attention_grad "b t h d" %q, %k, %k, %long, %out, %lse, %out scale 1.0 causal window 4 softcap 50.0 documents : (tensor<8x16x12x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20xi32>, tensor<8x16x12x64xf32>, tensor<8x12x16xf32>, tensor<8x16x12x64xf32>) -> (tensor<8x16x12x64xf32>, tensor<8x20x4x64xf32>, tensor<8x20x4x64xf32>)
  // CHECK: nn.attention "b t n h d" %{{.*}}, %{{.*}} scale 1.000000e+00 documents : (tensor<8x16x3x12x64xf32>, tensor<8x16xi32>)
  %1:2 = nn.attention "b t n h d" %all, %ids scale 1.0 documents : (tensor<8x16x3x12x64xf32>, tensor<8x16xi32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention "b t n h d" %{{.*}} scale 1.000000e+00 causal window 1 : (tensor<8x16x3x12x64xf32>)
  %2:2 = nn.attention "b t n h d" %all scale 1.0 causal window 1 : (tensor<8x16x3x12x64xf32>) -> (tensor<8x16x12x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad "b t n h d" {{.*}} scale 1.000000e+00 softcap 2.000000e+00 : {{.*}} -> tensor<8x16x3x12x64xf32>
  %3 = nn.attention_grad "b t n h d" %all, %1#0, %1#1, %1#0 scale 1.0 softcap 2.0 : (tensor<8x16x3x12x64xf32>, tensor<8x16x12x64xf32>, tensor<8x12x16xf32>, tensor<8x16x12x64xf32>) -> tensor<8x16x3x12x64xf32>
  return
}

// CHECK-LABEL: func.func @places
func.func @places(%q: tensor<8x12x16x64xf32>, %many: tensor<8x12x32x64xf32>, %k: tensor<8x4x16x64xf32>, %long: tensor<8x4x32x64xf32>, %ids: tensor<8x32xi32>, %b: tensor<1x16x32xf32>) {
  // CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal window 4 exchange ring : (tensor<8x12x16x64xf32>
  %out, %lse = nn.attention %q, %k, %k scale 1.0 causal window 4 exchange ring : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad {{.*}} scale 1.000000e+00 causal exchange gather :
  %0:3 = nn.attention_grad %q, %k, %k, %out, %lse, %q scale 1.0 causal exchange gather : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal documents at [0, 16] over ["context"] : (tensor<8x12x16x64xf32>
  %1:2 = nn.attention %q, %long, %long, %ids scale 1.0 causal documents at [0, 16] over ["context"] : (tensor<8x12x16x64xf32>, tensor<8x4x32x64xf32>, tensor<8x4x32x64xf32>, tensor<8x32xi32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_bias_grad {{.*}} scale 1.000000e+00 causal at [0, 16] over ["context"] :
  %2 = nn.attention_bias_grad %q, %long, %long, %b, %out, %lse, %q scale 1.0 causal at [0, 16] over ["context"] : (tensor<8x12x16x64xf32>, tensor<8x4x32x64xf32>, tensor<8x4x32x64xf32>, tensor<1x16x32xf32>, tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>) -> tensor<1x16x32xf32>
  // (C6) Keys end before the last queries, of which these see all.
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal at [0, 16] over ["context"] : (tensor<8x12x32x64xf32>, tensor<8x4x16x64xf32>
  %more:2 = nn.attention %many, %k, %k scale 1.0 causal at [0, 16] over ["context"] : (tensor<8x12x32x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>) -> (tensor<8x12x32x64xf32>, tensor<8x12x32xf32>)
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 causal exchange ring zigzag 4 : (tensor<8x12x16x64xf32>
  %3:2 = nn.attention %q, %k, %k scale 1.0 causal exchange ring zigzag 4 : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x12x16xf32>)
  // CHECK: nn.attention_grad {{.*}} scale 1.000000e+00 causal exchange gather zigzag 2 :
  %4:3 = nn.attention_grad %q, %k, %k, %3#0, %3#1, %q scale 1.0 causal exchange gather zigzag 2 : (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x12x16x64xf32>, tensor<8x12x16xf32>, tensor<8x12x16x64xf32>) -> (tensor<8x12x16x64xf32>, tensor<8x4x16x64xf32>, tensor<8x4x16x64xf32>)
  return
}
