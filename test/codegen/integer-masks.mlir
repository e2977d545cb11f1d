// An infinity fills integers with the least or greatest value of their type.
// RUN: fsdp-opt %s --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | FileCheck %s
// CHECK: ? narrow[i] : INT32_MIN;
// CHECK: ? wide[i] : INT64_MIN;
// CHECK: ? narrow[i] : 7;

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=4]>
  fsdp.program @all role {} {
    fsdp.segment @evaluate evaluate next [@evaluate] {
      %n = fsdp.input "narrow" sample_dim 0 shard_of 6 over ["fsdp"] : tensor<2xi32>
      %w = fsdp.input "wide" sample_dim 0 shard_of 6 over ["fsdp"] : tensor<2xi64>
      %a = fsdp.mask_padding %n dim 0 of 6 over ["fsdp"] fill -inf : tensor<2xi32> loc("a")
      %b = fsdp.mask_padding %w dim 0 of 6 over ["fsdp"] fill -inf : tensor<2xi64> loc("b")
      %c = fsdp.mask_padding %n dim 0 of 6 over ["fsdp"] fill 7.0 : tensor<2xi32> loc("c")
      %ra = nn.reduce max "b ->" %a : tensor<2xi32> -> tensor<i32> loc("ra")
      %rb = nn.reduce max "b ->" %b : tensor<2xi64> -> tensor<i64> loc("rb")
      %rc = nn.reduce sum "b ->" %c : tensor<2xi32> -> tensor<i32> loc("rc")
    }
  }
}
