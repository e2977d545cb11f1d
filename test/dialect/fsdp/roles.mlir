// Two roles (pipeline stages) of two segments each: nothing assumes one program.
// RUN: fsdp-opt %s --fsdp-verify-phase | fsdp-opt --fsdp-verify-phase | FileCheck %s

// CHECK: module attributes {fsdp.phase = "local"}
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["pipeline"=2, "fsdp"=2]>
  fsdp.param @w : tensor<8xf32> unit "u" init <constant, 0.0>
  // CHECK: fsdp.storage @u.flat : tensor<4xf32> flat over ["fsdp"] roles [@first] states []
  fsdp.storage @u.flat : tensor<4xf32> flat over ["fsdp"] roles [@first] states [] members [#fsdp.member<@w at 0>]

  // CHECK: fsdp.program @first role {pipeline = 0 : i64}
  fsdp.program @first role {pipeline = 0 : i64} {
    // CHECK-NEXT: fsdp.segment @middle train next [@middle, @last] {
    fsdp.segment @middle train next [@middle, @last] {
      // CHECK-NEXT: %[[P:.*]] = fsdp.load @u.flat "parameter" : tensor<4xf32>
      %p = fsdp.load @u.flat "parameter" : tensor<4xf32>
      // CHECK-NEXT: fsdp.all_gather %[[P]] dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %w = fsdp.all_gather %p dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
    }
    // CHECK: fsdp.segment @last train next [@middle] {
    fsdp.segment @last train next [@middle] {
    }
  }
  // CHECK: fsdp.program @second role {pipeline = 1 : i64}
  fsdp.program @second role {pipeline = 1 : i64} {
    // CHECK-NEXT: fsdp.segment @middle train next [@middle, @last] {
    fsdp.segment @middle train next [@middle, @last] {
    }
    // CHECK: fsdp.segment @last train next [@middle] {
    fsdp.segment @last train next [@middle] {
    }
  }
}
