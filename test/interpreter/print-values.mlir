// Values whose names match, with their statistics: of what is finite, and how many are not. A name is that of the location, of an input, a parameter,
// or, without any, of the op.
// RUN: fsdp-run %s --print='r*' --steps=2 | FileCheck %s
// CHECK: step 1 rows tensor<2xf32>: min 2 max 2 mean 2 nan 0: 2 2{{$}}
// CHECK-NEXT: step 1 ratio tensor<8xf32>: min -1 max 1 mean 0.714286 nan 1: 1 -1 nan 1 1 1 ...{{$}}
// CHECK-NEXT: step 1 loss
// CHECK-NEXT: step 2 rows tensor<2xf32>: min
// CHECK-NEXT: step 2 ratio tensor<8xf32>: min
// RUN: fsdp-run %s --print='math.?xp' | FileCheck %s --check-prefix=OP
// OP: step 1 math.exp tensor<2xf32>: min 7.38906 max 7.38906 mean 7.38906 nan 0: 7.38906 7.38906{{$}}
// RUN: fsdp-run %s --print=infinite | FileCheck %s --check-prefix=NONE
// NONE: step 1 infinite tensor<f32>: min inf max -inf mean nan nan 1: inf{{$}}
// Values of one name are told apart, by the kind of what computes them, and by their order.
// RUN: fsdp-run %s --print=twin | FileCheck %s --check-prefix=TWIN
// TWIN: step 1 twin (arith.negf 1 of 2) tensor<2xf32>: min -2
// TWIN-NEXT: step 1 twin (arith.negf 2 of 2) tensor<2xf32>: min 2
// TWIN-NEXT: step 1 twin (math.absf) tensor<2xf32>: min 2
// RUN: fsdp-run %s --print=arith.addf | FileCheck %s --check-prefix=SAME
// SAME: step 1 arith.addf (1 of 2) tensor<2xf32>: min 4
// SAME-NEXT: step 1 arith.addf (2 of 2) tensor<2xf32>: min 6
// With the result on standard output lines for people go elsewhere.
// RUN: fsdp-run %s --print=rows --outputs=- >%t.out 2>%t.err
// RUN: FileCheck %s --check-prefix=ELSEWHERE --input-file=%t.err
// ELSEWHERE: step 1 rows tensor<2xf32>

// RUN: not fsdp-run %s --print=fc9 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: --print: got 'fc9', but no value of '{{.*}}' has such a name; it has 'rows', 'arith.constant', 'ratio', 'math.exp', 'twin', …{{$}}
// RUN: not fsdp-run %s --print='[' 2>&1 | FileCheck %s --check-prefix=PATTERN
// PATTERN: error: --print: got '[', expected names with '*', '?' and '[...]': invalid glob pattern
fsdp.param @rows : tensor<2xf32> unit "u" init <constant, 2.0>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %w = fsdp.read @rows : tensor<2xf32>
  %c = arith.constant dense<[1.0, -2.0, 0.0, 4.0, 0.5, 3.0, 7.0, 1.5]> : tensor<8xf32>
  %a = arith.constant dense<[1.0, 2.0, 0.0, 4.0, 0.5, 3.0, 7.0, 1.5]> : tensor<8xf32>
  %ratio = arith.divf %c, %a : tensor<8xf32> loc("ratio")
  %e = math.exp %w : tensor<2xf32>
  %minus = arith.negf %w : tensor<2xf32> loc("twin")
  %plus = arith.negf %minus : tensor<2xf32> loc("twin")
  %size = math.absf %plus : tensor<2xf32> loc("twin")
  %four = arith.addf %size, %plus : tensor<2xf32>
  %six = arith.addf %four, %plus : tensor<2xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %infinite = arith.divf %one, %zero : tensor<f32> loc("infinite")
  %sum = nn.reduce sum "a ->" %e : tensor<2xf32> -> tensor<f64>
  %weight = arith.constant dense<2.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
