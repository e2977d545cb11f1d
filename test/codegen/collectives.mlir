// Collectives beyond FSDP's own: what both targets call, and that the checker, the record and the interpreter take
// them through every phase.
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --fsdp-verify-phase %s > %t.scheduled
// RUN: fsdp-translate --fsdp-to-cpp %t.scheduled | FileCheck %s --check-prefix=CPU
// RUN: fsdp-translate --fsdp-to-cuda %t.scheduled | FileCheck %s --check-prefix=CUDA
// RUN: fsdp-translate --fsdp-to-record %t.scheduled | FileCheck %s --check-prefix=RECORD

// CPU: all_to_all(c, kActivation, "spread all_to_all", kOverTensorActivation, arena::input_x,
// CPU-NEXT: arena::spread_all_to_all,
// CPU-NEXT: AllToAllLayout{/*outer=*/1, /*middle=*/1, /*inner=*/1, /*splitLocal=*/3, /*splitTotal=*/6,
// CPU-NEXT: /*concatLocal=*/2, /*concatTotal=*/3, /*splitFirst=*/false});
// CPU-NEXT: all_to_all(c, kActivation, "cut all_to_all", kOverTensorActivation, arena::spread_all_to_all,
// CPU-NEXT: arena::cut_all_to_all, RecutLayout{/*outer=*/3, /*given=*/3, /*inner=*/1, /*received=*/2});
// CPU-NEXT: collective_permute(c, kActivation, "turn collective_permute", kOverTensorActivation,
// CPU-NEXT: arena::cut_all_to_all, arena::turn_collective_permute, SourceRanks<1, 0>());
// CPU-NEXT: broadcast(c, kActivation, "first broadcast", kOverTensorActivation,
// CPU-NEXT: arena::turn_collective_permute, arena::first_broadcast, /*root=*/0);

// CUDA: CHECK(c, "spread all_to_all",
// CUDA: all_to_all(AllToAllLayout{/*outer=*/1, /*middle=*/1, /*inner=*/1, /*splitLocal=*/3,
// CUDA-NEXT: /*splitTotal=*/6, /*concatLocal=*/2, /*concatTotal=*/3, /*splitFirst=*/false},
// CUDA-NEXT: c.in(arena::input_x), c.out(arena::spread_all_to_all), c.comm(kOverTensorActivation,
// CUDA-NEXT: kActivation), c.stream(kActivation)));
// CUDA-NEXT: CHECK(c, "cut all_to_all",
// CUDA-NEXT: all_to_all(RecutLayout{/*outer=*/3, /*given=*/3, /*inner=*/1, /*received=*/2},
// CUDA: CHECK(c, "turn collective_permute",
// CUDA-NEXT: collective_permute(SourceRanks<1, 0>(), /*count=*/6, c.in(arena::cut_all_to_all),
// CUDA: CHECK(c, "first broadcast",
// CUDA-NEXT: ncclBroadcast(c.in(arena::turn_collective_permute), c.out(arena::first_broadcast), 6,
// CUDA-NEXT: ncclFloat, /*root=*/0, c.comm(kOverTensorActivation, kActivation), c.stream(kActivation)));

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
      %ok = fsdp.all_finite %s : tensor<f32>
      fsdp.advance if %ok
    }
  }
}
