// In the local phase the segments of a walk run one after another, each run of one that loads inputs with the next
// microbatch, and what they log are the outputs of the walk.
// RUN: fsdp-run %s --inputs=%{golden}/linear/10-5-3.data.safetensors --steps=2 | FileCheck %s
// CHECK: step 1 rows 2{{$}}
// CHECK-NEXT: step 1 second [[SECOND:.*]]
// CHECK-NEXT: step 1 whole [[WHOLE:.*]]
// CHECK-NEXT: step 2 rows 2{{$}}
// CHECK-NOT: step 2 second [[SECOND]]
// CHECK: step 2 whole
// Another program of it takes the same rows as one batch.
// RUN: fsdp-run %s --inputs=%{golden}/linear/10-5-3.data.safetensors --segment=plain,train | FileCheck %s --check-prefix=PLAIN
// PLAIN: step 1 plain plain [[WHOLE:.*]]
// PLAIN: step 1 train whole [[WHOLE]]
// RUN: not fsdp-run %s --segment=part 2>&1 | FileCheck %s --check-prefix=PART
// PART: error: has no segment 'part'
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.param @w : tensor<2xf32> unit "w" init <constant, 0.0>
  fsdp.storage @sum : tensor<2xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.walk @train train [@start, @part, @end] times [1, 2, 1]
    fsdp.walk @plain train [@batch] times [1]
    fsdp.segment @start train next [@part] {
      %zero = arith.constant dense<0.0> : tensor<2xf32>
      fsdp.store %zero, @sum "parameter" : tensor<2xf32>
    }
    fsdp.segment @part train next [@part, @end] {
      %x = fsdp.input "x" sample_dim 0 shard_of 2 over [] microbatches 2 : tensor<1x5xf32>
      %rows = nn.reduce sum "b i ->" %x : tensor<1x5xf32> -> tensor<f32>
      fsdp.output "second" %rows
      %row = nn.repeat "-> n" %rows {n = 2 : i64} : tensor<f32> -> tensor<2xf32>
      %sum = fsdp.load @sum "parameter" : tensor<2xf32>
      %more = arith.addf %sum, %row : tensor<2xf32>
      fsdp.store %more, @sum "parameter" : tensor<2xf32>
    }
    fsdp.segment @end train next [@start] {
      %sum = fsdp.load @sum "parameter" : tensor<2xf32>
      %both = nn.reduce mean "n ->" %sum : tensor<2xf32> -> tensor<f32>
      fsdp.output "whole" %both
      %rows = arith.constant dense<2.0> : tensor<f32>
      fsdp.output "rows" %rows
      %ok = arith.constant dense<true> : tensor<i1>
      fsdp.advance if %ok
    }
    fsdp.segment @batch train next [@batch] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x5xf32>
      %rows = nn.reduce sum "b i ->" %x : tensor<2x5xf32> -> tensor<f32>
      fsdp.output "plain" %rows
    }
  }
}
