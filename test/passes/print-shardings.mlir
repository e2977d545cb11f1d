// The table of shardings, and where each axis of a value comes from.
// RUN: fsdp-opt %s --fsdp-propagate --fsdp-print-shardings -o /dev/null 2>&1 | FileCheck %s --strict-whitespace --match-full-lines
// RUN: fsdp-opt %s --fsdp-propagate --fsdp-print-shardings=only=nn.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONLY
// RUN: fsdp-opt %s --fsdp-propagate=explain=* -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: not fsdp-opt %s --fsdp-propagate=explain=h.7 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fsdp-opt %s --fsdp-propagate=explain=[ 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not fsdp-opt %s --fsdp-propagate --fsdp-print-shardings=only=[ 2>&1 | FileCheck %s --check-prefix=ONLY-PATTERN
// RUN: not fsdp-opt %s --fsdp-print-shardings 2>&1 | FileCheck %s --check-prefix=BEFORE

//      CHECK:shardings of step 'evaluate'
// CHECK-NEXT:  value            op               shape  sharding     of one rank  bytes  partial over
// CHECK-NEXT:  fsdp.input       fsdp.input       8x6    fsdp,_       4x6          96
// CHECK-NEXT:  fsdp.reshard     fsdp.reshard     8x6    fsdp,tensor  4x3          48
// CHECK-NEXT:  math.tanh        math.tanh        8x6    fsdp,tensor  4x3          48
// CHECK-NEXT:  fsdp.constraint  fsdp.constraint  8x6    fsdp,tensor  4x3          48
// CHECK-NEXT:  nn.reduce        nn.reduce        6      tensor       3            12     fsdp
// CHECK-NEXT:  arith.constant   arith.constant   3      _            3            12

// ONLY: nn.reduce
// ONLY-NOT: math.tanh

// EXPLAIN: remark: 'fsdp.input' dimension 0 is split over 'fsdp': given by 'fsdp.input', priority 0
// EXPLAIN: remark: 'math.tanh' dimension 1 is split over 'tensor': from 'fsdp.constraint' across 'fsdp.constraint', priority 0, round 'ops that pass dimensions through'
// EXPLAIN-NOT: note: the op
// EXPLAIN: remark: 'nn.reduce' dimension 0 is split over 'tensor': from 'fsdp.constraint' across 'nn.reduce', priority 0, round 'factors that pass through'
// EXPLAIN: remark: 'arith.constant' is not split: no axis reached it

// NONE: error: --explain-shardings got 'h.7', expected the name of a value of a step; see the table of --print-shardings
// PATTERN: error: --explain-shardings got '[', expected a pattern: {{.+}}
// ONLY-PATTERN: error: option 'only' is '[', expected a pattern: {{.+}}
// BEFORE: has no sharding for each of its 1 results; run --fsdp-propagate first
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x6xf32>
  %y = math.tanh %x : tensor<8x6xf32>
  %c = fsdp.constraint %y <@mesh, [{?}, {"tensor"}]> : tensor<8x6xf32>
  %s = nn.reduce sum "b i -> i" %c : tensor<8x6xf32> -> tensor<6xf32>
  %k = arith.constant dense<1.0> : tensor<3xf32>
}
