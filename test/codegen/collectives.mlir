// Collectives beyond FSDP's own: what both targets call, and that the checker, the record and the interpreter take
// them through every phase.
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s > %t.scheduled
// RUN: fsdp-translate --fsdp-to-cpp %t.scheduled | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t.scheduled | FileCheck %s
// RUN: fsdp-translate --fsdp-to-record %t.scheduled | FileCheck %s --check-prefix=RECORD

// CHECK: all_to_all(c, kActivation, "spread all_to_all", kOverTensorActivation,
// CHECK-NEXT: AllToAllLayout{/*outer=*/1, /*middle=*/1, /*inner=*/1, /*splitLocal=*/3, /*splitTotal=*/6,
// CHECK-NEXT: /*concatLocal=*/2, /*concatTotal=*/3, /*splitFirst=*/false}, arena::input_x,
// CHECK-NEXT: arena::spread_all_to_all);
// CHECK-NEXT: all_to_all(c, kActivation, "cut all_to_all", kOverTensorActivation,
// CHECK-NEXT: RepartitionLayout{/*outer=*/3, /*given=*/3, /*inner=*/1, /*received=*/2},
// CHECK-NEXT: arena::spread_all_to_all, arena::cut_all_to_all);
// CHECK-NEXT: collective_permute(c, kActivation, "turn collective_permute", kOverTensorActivation,
// CHECK-NEXT: /*sources=*/SourceRanks::of<1, 0>(), arena::cut_all_to_all, arena::turn_collective_permute);
// CHECK-NEXT: broadcast(c, kActivation, "first broadcast", kOverTensorActivation, Root{/*rank=*/0},
// CHECK-NEXT: arena::turn_collective_permute, arena::first_broadcast);

// RECORD: launch activation "spread all_to_all" reads=[128:48] writes=[192:36] over=tensor_activation kind=all_to_all
// RECORD-NEXT: launch activation "cut all_to_all" reads=[192:36] writes=[128:24] over=tensor_activation kind=all_to_all
// RECORD-NEXT: launch activation "turn collective_permute" reads=[128:24] writes=[192:24] over=tensor_activation kind=collective_permute
// RECORD-NEXT: launch activation "first broadcast" reads=[192:24] writes=[128:24] over=tensor_activation kind=broadcast

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["tensor"=2]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 shard_of 3 over ["tensor"] : tensor<2x6xf32>
      // Rows become columns: 3 rows in parts of 2, 6 columns in parts of 3.
      %a = fsdp.all_to_all %x split 1 concat 0 over ["tensor"] : tensor<2x6xf32> -> tensor<3x3xf32> loc("spread")
      %b = fsdp.all_to_all %a split 1 concat 1 over ["tensor"] : tensor<3x3xf32> -> tensor<3x2xf32> loc("cut")
      %c = fsdp.collective_permute %b from [1, 0] over ["tensor"] : tensor<3x2xf32> loc("turn")
      %d = fsdp.broadcast %c from 0 over ["tensor"] : tensor<3x2xf32> loc("first")
      %s = nn.reduce sum "r c ->" %d : tensor<3x2xf32> -> tensor<f32> loc("loss")
      fsdp.output "loss" %s
      %ok = fsdp.acceptable %s norm %s
      fsdp.advance if %ok
    }
  }
}
