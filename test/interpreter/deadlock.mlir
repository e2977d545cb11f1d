// Ranks that do not meet are reported at once, with who waits for whom.
// RUN: split-file %s %t
// RUN: not fsdp-run %t/absent.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fsdp-run %t/crossed.mlir 2>&1 | FileCheck %s --check-prefix=CROSSED
// RUN: not fsdp-run %t/mismatch.mlir 2>&1 | FileCheck %s --check-prefix=MISMATCH
// RUN: not fsdp-run %t/outputs.mlir 2>&1 | FileCheck %s --check-prefix=OUTPUTS
// RUN: not fsdp-run %t/steps.mlir 2>&1 | FileCheck %s --check-prefix=STEPS

//--- absent.mlir
// One role has a collective that the other lacks.
// ABSENT: error: deadlock: no rank can continue: rank 0 waits for a collective that other ranks do not join
// ABSENT: note: rank 0 waits at 'fsdp.all_reduce sum over ["pipeline"] : tensor<f64> -> tensor<f64>', with ranks [0, 1]
// ABSENT: note: rank 1 is done
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce sum %a over ["pipeline"] : tensor<f64>
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
  }
}

//--- crossed.mlir
// Two axes in opposite orders: each rank waits for another group.
// CROSSED: error: deadlock: no rank can continue
// CROSSED: note: rank 0 waits at 'fsdp.all_reduce sum over ["data"]
// CROSSED-SAME: with ranks [0, 2]
// CROSSED: note: rank 2 waits at 'fsdp.all_reduce sum over ["fsdp"]
// CROSSED-SAME: with ranks [2, 3]
fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.program @first role {data = 0 : i64, fsdp = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce sum %a over ["data"] : tensor<f64>
    %c = fsdp.all_reduce sum %b over ["fsdp"] : tensor<f64>
  }
}
fsdp.program @second role {data = 0 : i64, fsdp = 1 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce sum %a over ["fsdp"] : tensor<f64>
    %c = fsdp.all_reduce sum %b over ["data"] : tensor<f64>
  }
}
fsdp.program @third role {data = 1 : i64, fsdp = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce sum %a over ["fsdp"] : tensor<f64>
    %c = fsdp.all_reduce sum %b over ["data"] : tensor<f64>
  }
}
fsdp.program @fourth role {data = 1 : i64, fsdp = 1 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce sum %a over ["data"] : tensor<f64>
    %c = fsdp.all_reduce sum %b over ["fsdp"] : tensor<f64>
  }
}

//--- mismatch.mlir
// MISMATCH: error: ranks call different collectives: rank 0 at 'fsdp.all_reduce sum over ["pipeline"] : tensor<f64> -> tensor<f64>', rank 1 at 'fsdp.all_reduce max over ["pipeline"] : tensor<f64> -> tensor<f64>'
// MISMATCH: note: rank 1 is here
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce sum %a over ["pipeline"] : tensor<f64>
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
    %a = arith.constant dense<1.0> : tensor<f64>
    %b = fsdp.all_reduce max %a over ["pipeline"] : tensor<f64>
  }
}

//--- outputs.mlir
// OUTPUTS: error: rank 1 logs 'loss' = 2{{.*}}, rank 0 logs 1
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step evaluate next [@step] {
    %a = arith.constant dense<1.0> : tensor<f32>
    fsdp.output "loss" %a
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step evaluate next [@step] {
    %a = arith.constant dense<2.0> : tensor<f32>
    fsdp.output "loss" %a
  }
}

//--- steps.mlir
// STEPS: error: ranks 0 and 1 disagree on the number of steps or updates done
fsdp.mesh @mesh <["pipeline"=2]>
fsdp.program @first role {pipeline = 0 : i64} {
  fsdp.segment @step train next [@step] {
    %ok = arith.constant dense<true> : tensor<i1>
    fsdp.advance if %ok
  }
}
fsdp.program @second role {pipeline = 1 : i64} {
  fsdp.segment @step train next [@step] {
  }
}
