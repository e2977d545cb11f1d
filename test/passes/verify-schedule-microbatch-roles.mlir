// Each role loads one input, in microbatches of one segment; the middle role loads none but counts samples.
// RUN: fsdp-opt --fsdp-verify-schedule %s -o %t.same
// RUN: sed '/program @la[s]t/,$s/at 1 : /at 0 : /' %s | not fsdp-opt --fsdp-verify-schedule 2>&1 | FileCheck %s
// CHECK: error: 'fsdp.input' op is 'at' microbatch 0 of 'y', expected 1, as walk 'train' has loaded it 1 times before; load microbatches in order
module attributes {fsdp.phase = "scheduled"} {
  fsdp.mesh @mesh <["pipeline"=3]>
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" : !fsdp.buffer<tensor<2xf32>>
      %b = fsdp.buffer "b" : !fsdp.buffer<tensor<2xf32>>
      %t = fsdp.launch "input x" on "input" outs(%a : !fsdp.buffer<tensor<2xf32>>) {
        %x = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 2 at 0 : tensor<2xf32>
        fsdp.yield %x : tensor<2xf32>
      }
      %u = fsdp.launch "input x 2" on "input" outs(%b : !fsdp.buffer<tensor<2xf32>>) {
        %x = fsdp.input "x" sample_dim 0 shard_of 4 over [] microbatches 2 at 1 : tensor<2xf32>
        fsdp.yield %x : tensor<2xf32>
      }
    }
  }
  fsdp.program @middle role {pipeline = 1 : i64} {
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" : !fsdp.buffer<tensor<i64>>
      %t = fsdp.launch "count" on "compute" outs(%a : !fsdp.buffer<tensor<i64>>) {
        %n = fsdp.microbatch_samples of 4 over [] microbatches 2 at 1
        fsdp.yield %n : tensor<i64>
      }
    }
  }
  fsdp.program @last role {pipeline = 2 : i64} {
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" : !fsdp.buffer<tensor<2xf32>>
      %b = fsdp.buffer "b" : !fsdp.buffer<tensor<2xf32>>
      %t = fsdp.launch "input y" on "input" outs(%a : !fsdp.buffer<tensor<2xf32>>) {
        %x = fsdp.input "y" sample_dim 0 shard_of 4 over [] microbatches 2 at 0 : tensor<2xf32>
        fsdp.yield %x : tensor<2xf32>
      }
      %u = fsdp.launch "input y 2" on "input" outs(%b : !fsdp.buffer<tensor<2xf32>>) {
        %x = fsdp.input "y" sample_dim 0 shard_of 4 over [] microbatches 2 at 1 : tensor<2xf32>
        fsdp.yield %x : tensor<2xf32>
      }
    }
  }
}
