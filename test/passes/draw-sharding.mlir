// Which rank holds which part.
// RUN: fsdp-opt %s --fsdp-propagate --fsdp-draw-sharding=value=h -o /dev/null 2>&1 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-propagate --fsdp-draw-sharding=value=w -o /dev/null 2>&1 | FileCheck %s --check-prefix=PARAMETER
// RUN: fsdp-opt %s --fsdp-propagate --fsdp-draw-sharding="value=h file=%t.svg" -o /dev/null
// RUN: FileCheck %s --check-prefix=SVG --input-file=%t.svg
// RUN: not fsdp-opt %s --fsdp-propagate --fsdp-draw-sharding=value=nothing 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not fsdp-opt %s --fsdp-propagate --fsdp-draw-sharding="value=h file=/nowhere/x.svg" 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: fsdpc %s --mesh=fsdp=2,tensor=3 --draw-sharding=h --emit=global -o %t.global 2>&1 | FileCheck %s --check-prefix=TOOL
// RUN: not fsdpc %s --draw-sharding=h= --emit=global 2>&1 | FileCheck %s --check-prefix=UNNAMED
// RUN: not fsdpc %s --draw-sharding==h.svg --emit=global 2>&1 | FileCheck %s --check-prefix=VALUELESS

// UNNAMED: fsdpc: error: --draw-sharding: got 'h=', expected NAME or NAME=FILE.svg; see fsdpc --help
// VALUELESS: fsdpc: error: --draw-sharding: got '=h.svg', expected NAME or NAME=FILE.svg; see fsdpc --help
// CHECK: h : tensor<7x5x8xf32>, fsdp,_,tensor; ranks:
// CHECK-NEXT: [0, 4) [4, 8)
// CHECK-NEXT: ┌────────┬────────┐
// CHECK-NEXT: [0, 4) │   0    │   1    │
// CHECK-NEXT: ├────────┼────────┤
// CHECK-NEXT: [4, 7) │   2    │   3    │
// CHECK-NEXT: └────────┴────────┘
// PARAMETER: w : tensor<8xf32>, tensor; ranks:
// PARAMETER-NEXT: [0, 4) [4, 8)
// PARAMETER-NEXT: ┌────────┬────────┐
// PARAMETER-NEXT: │  0 2   │  1 3   │
// SVG: <svg xmlns="http://www.w3.org/2000/svg"
// SVG: >h : tensor&lt;7x5x8xf32&gt;, fsdp,_,tensor</text>
// SVG-COUNT-4: <rect x=
// SVG: </svg>
// NOTHING: error: --draw-sharding got 'nothing', expected the name of a value of a step or of a parameter that it reads; see the table of --print-shardings
// NOWHERE: error: cannot write '/nowhere/x.svg': No such file or directory
// TOOL: h : tensor<7x5x8xf32>, fsdp,_,tensor; ranks:
// TOOL-NEXT: [0, 3) [3, 6) [6, 8)
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.param @w : tensor<8xf32> unit "u" init <normal, 0.5> split [["tensor"]] placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always, compute = <@mesh, [{"tensor"}]>>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<7x5x8xf32>
  %w = fsdp.read @w : tensor<8xf32>
  %r = nn.repeat "c -> a b c" %w : tensor<8xf32> -> tensor<7x5x8xf32>
  %h = arith.mulf %x, %r : tensor<7x5x8xf32> loc("h")
  %sum = nn.reduce sum "a b c ->" %h : tensor<7x5x8xf32> -> tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
