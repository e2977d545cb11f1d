// The first test of the project: a layer whose unit is gathered in forward and again in backward keeps both
// gathers under the upstream passes that would merge or hoist them if a gather were pure; an unused gather goes.
// RUN: fsdp-opt %s --cse --canonicalize --loop-invariant-code-motion | FileCheck %s

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4x4xf32> unit "fc" init <normal, 2.0e-02>
fsdp.storage @fc.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>]

// CHECK-LABEL: fsdp.segment @train
// CHECK-COUNT-2: fsdp.all_gather
// CHECK-NOT: fsdp.all_gather
fsdp.program @all role {} {
  fsdp.segment @train train next [@train] {
    %x = fsdp.input "x" sample_dim 0 shard_of 6 over ["fsdp"] : tensor<3x4xf32>
    %s = fsdp.load @fc.flat "parameter" : tensor<16xf32>
    %f = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<16xf32>
    %unused = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<16xf32>
    %w = fsdp.view %f at 0 : tensor<16xf32> -> tensor<4x4xf32>
    %y = nn.einsum "bi,io->bo" %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    // Backward: the cotangent of x.
    %g = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<16xf32>
    %v = fsdp.view %g at 0 : tensor<16xf32> -> tensor<4x4xf32>
    %d = nn.einsum "bo,io->bi" %y, %v : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %l = nn.reduce sum "b i ->" %d : tensor<3x4xf32> -> tensor<f32>
    fsdp.output "loss" %l
  }
}
