// A module of two roles and two segments, written by hand, is accepted in the local phase and survives two round
// trips; so is a model in the global phase, with or without the attribute.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/roles.mlir --fsdp-verify-phase | fsdp-opt --fsdp-verify-phase > %t/once.mlir
// RUN: fsdp-opt %t/once.mlir --fsdp-verify-phase > %t/twice.mlir
// RUN: diff %t/once.mlir %t/twice.mlir
// RUN: FileCheck %s --input-file=%t/twice.mlir --check-prefix=ROLES
// RUN: fsdp-opt %t/global.mlir --fsdp-verify-phase | FileCheck %s --check-prefix=GLOBAL

//--- roles.mlir
// ROLES: fsdp.phase = "local"
// ROLES: fsdp.program @first role {pipeline = 0 : i64}
// ROLES: fsdp.segment @warmup train next [@steady]
// ROLES: fsdp.segment @steady train next [@steady, @warmup]
// ROLES: fsdp.program @second role {pipeline = 1 : i64}
// ROLES: fsdp.segment @warmup train next [@steady]
// ROLES: fsdp.segment @steady train next [@steady, @warmup]
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2, "fsdp"=2]>
  fsdp.param @a : tensor<5x4xf32> unit "a" init <normal, 0.1>
  fsdp.storage @a.flat : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@a at 0>]
  fsdp.program @first role {pipeline = 0 : i64} {
    fsdp.segment @warmup train next [@steady] {
      %x = fsdp.input "x" sample_dim 0 shard_of 6 over ["fsdp"] : tensor<3x5xf32>
      %s = fsdp.load @a.flat "parameter" : tensor<16xf32>
      %f = fsdp.all_gather %s dim 0 over ["fsdp"] : tensor<16xf32> -> tensor<20xf32>
      %w = fsdp.view %f at 0 : tensor<20xf32> -> tensor<5x4xf32>
      %y = nn.einsum "bi,io->bo" %x, %w : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
    }
    fsdp.segment @steady train next [@steady, @warmup] {
    }
  }
  fsdp.program @second role {pipeline = 1 : i64} {
    fsdp.segment @warmup train next [@steady] {
      %x = fsdp.input "x" sample_dim 0 shard_of 6 over ["fsdp"] : tensor<3x5xf32>
      %l = nn.reduce sum "b i ->" %x : tensor<3x5xf32> -> tensor<f32>
      %t = fsdp.all_reduce sum %l over ["fsdp"] : tensor<f32>
      fsdp.output "loss" %t
    }
    fsdp.segment @steady train next [@steady, @warmup] {
    }
  }
}

//--- global.mlir
// GLOBAL: fsdp.step
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
}
