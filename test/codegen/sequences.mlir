// Ops that the runtime has a function for: sizes as it wants them, operands, then results.
// RUN: fsdp-opt %s --fsdp-to-scheduled | fsdp-translate --fsdp-to-cpp | FileCheck %s

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @table : tensor<5x8xf32> unit "all" init <normal, 0.02>
fsdp.param @scale : tensor<8xf32> unit "all" init <constant, 1.0>
fsdp.param @bias : tensor<8xf32> unit "all" init <constant, 0.0>

// CHECK-DAG: embedding(c, kCompute, "{{.*}}", EmbeddingShape{/*ids=*/12, /*vocabulary=*/5, /*width=*/8}
// CHECK-DAG: layer_norm(c, kCompute, "{{[a-z_]*}}", NormRows{/*rows=*/12, /*width=*/8, /*epsilon=*/1e-05}
// CHECK-DAG: RopeShape{/*blocks=*/6, /*positions=*/4, /*inner=*/1, /*width=*/4, /*theta=*/1e+04,
// CHECK-DAG: /*inverse=*/false}, arena::rearrange, arena::rope);
// CHECK-DAG: /*inverse=*/false, /*magnitude=*/1.25, /*factor=*/4.0, /*ramp=*/RopeRamp::Index, /*from=*/2.0,
// CHECK-DAG: /*to=*/0.5}, arena::rearrange, arena::rope_2);
// CHECK-DAG: /*inverse=*/true, /*magnitude=*/1.25, /*factor=*/4.0, /*ramp=*/RopeRamp::Index, /*from=*/2.0,
// CHECK-DAG: pad(c, kCompute, "{{.*}}", Part{/*outer=*/6, /*whole=*/20, /*start=*/4, /*size=*/16}
// CHECK-DAG: attention(c, kCompute, "attention"
// CHECK-DAG: AttentionShape{/*batch=*/3, /*heads=*/2, /*groups=*/2, /*queries=*/4, /*keys=*/5, /*width=*/4
// CHECK-DAG: /*scale=*/0.5f, /*causal=*/true, /*q=*/{32, 16, 4}, /*k=*/{40, 20, 4}, /*out=*/{32, 16, 4}},
// CHECK-DAG: arena::rope, arena::pad, arena::pad, arena::attention
// CHECK-DAG: rms_norm(c, kCompute, "{{[a-z_]*}}", NormRows{/*rows=*/24, /*width=*/4, /*epsilon=*/1e-06}
// CHECK-DAG: slice(c, kCompute, "{{.*}}", Part{/*outer=*/24, /*whole=*/4, /*start=*/1, /*size=*/2}
// CHECK-DAG: concat(c, kCompute, "concat", Join<2>{/*outer=*/24, /*sizes=*/{4, 2}}, arena::rms_norm,{{$}}
// CHECK-DAG: softmax(c, kCompute, "{{.*}}", SoftmaxRows{/*rows=*/24, /*width=*/6}
// CHECK-DAG: ScanShape{/*outer=*/6, /*size=*/4, /*inner=*/6, /*exclusive=*/true, /*reverse=*/false},{{$}}
// CHECK-DAG: arena::softmax, arena::scan_sum);
// CHECK-DAG: ScanShape{/*outer=*/6, /*size=*/4, /*inner=*/6, /*exclusive=*/true, /*reverse=*/true},{{$}}
// CHECK-DAG: attention_grad(c, kCompute
// CHECK-DAG: NormRows{/*rows=*/12, /*width=*/8, /*epsilon=*/0.0}, arena::embedding, arena::scale
// CHECK-DAG: rms_norm_grad(c, kCompute
// CHECK-DAG: EmbeddingShape{/*ids=*/12, /*vocabulary=*/5, /*width=*/8}, arena::input_ids
// CHECK-DAG: /*inverse=*/true}
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %ids = fsdp.input "ids" sample_dim 0 : tensor<6x4xi32>
  %t = fsdp.read @table : tensor<5x8xf32>
  %s = fsdp.read @scale : tensor<8xf32>
  %b = fsdp.read @bias : tensor<8xf32>
  %x = nn.embedding %t, %ids : tensor<5x8xf32>, tensor<6x4xi32> -> tensor<6x4x8xf32>
  %y, %mean, %rstd = nn.layer_norm %x, %s, %b eps 1.0e-05 : tensor<6x4x8xf32>, tensor<8xf32> -> tensor<6x4xf32>
  %h = nn.rearrange "b t (h d) -> b h t d" %y : tensor<6x4x8xf32> -> tensor<6x2x4x4xf32>
  %q = nn.rope %h dim 2 theta 1.0e+04 : tensor<6x2x4x4xf32>
  %slow = nn.rope %h dim 2 theta 1.0e+04 factor 4.0 ramp index from 2.0 to 0.5 magnitude 1.25 : tensor<6x2x4x4xf32>
  %k = nn.pad %slow dim 2 low 1 : tensor<6x2x4x4xf32> -> tensor<6x2x5x4xf32>
  %a, %lse = nn.attention %q, %k, %k scale 0.5 causal : (tensor<6x2x4x4xf32>, tensor<6x2x5x4xf32>, tensor<6x2x5x4xf32>) -> (tensor<6x2x4x4xf32>, tensor<6x2x4xf32>)
  %bt = fsdp.read @bias : tensor<8xf32>
  %part = nn.slice %bt dim 0 start 4 : tensor<8xf32> -> tensor<4xf32>
  %n, %r = nn.rms_norm %a, %part eps 1.0e-06 : tensor<6x2x4x4xf32>, tensor<4xf32> -> tensor<6x2x4xf32>
  %cut = nn.slice %n dim 3 start 1 : tensor<6x2x4x4xf32> -> tensor<6x2x4x2xf32>
  %join = nn.concat %n, %cut dim 3 : (tensor<6x2x4x4xf32>, tensor<6x2x4x2xf32>) -> tensor<6x2x4x6xf32>
  %p = nn.softmax %join : tensor<6x2x4x6xf32>
  %c = nn.scan_sum "b h t d" along "t" %p exclusive : tensor<6x2x4x6xf32>
  %pp = arith.mulf %p, %c : tensor<6x2x4x6xf32>
  %sum = nn.reduce sum "b h t d ->" %pp : tensor<6x2x4x6xf32> -> tensor<f64>
  %weight = arith.constant dense<24.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
