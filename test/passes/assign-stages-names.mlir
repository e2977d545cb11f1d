// RUN: fsdp-opt %s --fsdp-assign-stages=stages=2,2,2,2,2 | FileCheck %s

// What different stages use of one unit are units whose names have all these stages. Parameters of which only the first and the last
// stage are the same share none; those that the same stages use share one. A unit of the model that has such a name keeps it.
// CHECK: fsdp.param @ends : tensor<4x4xf32> unit "u.stage0_2to4"
// CHECK: fsdp.param @both : tensor<4x4xf32> unit "u.stage0_2to4"
// CHECK: fsdp.param @early : tensor<4x4xf32> unit "u.stage0_1_4"
// CHECK: fsdp.param @inner : tensor<4x4xf32> unit "u.stage2.2"
// CHECK: fsdp.param @c : tensor<4x4xf32> unit "u.stage2"
fsdp.mesh @mesh <["pipeline"=5, "fsdp"=2]>
fsdp.param @ends : tensor<4x4xf32> unit "u" init <normal, 2.0e-02>
fsdp.param @both : tensor<4x4xf32> unit "u" init <normal, 2.0e-02>
fsdp.param @early : tensor<4x4xf32> unit "u" init <normal, 2.0e-02>
fsdp.param @inner : tensor<4x4xf32> unit "u" init <normal, 2.0e-02>
fsdp.param @a : tensor<4x4xf32> unit "a" init <normal, 2.0e-02>
fsdp.param @b : tensor<4x4xf32> unit "b" init <normal, 2.0e-02>
fsdp.param @c : tensor<4x4xf32> unit "u.stage2" init <normal, 2.0e-02>
fsdp.param @d : tensor<4x4xf32> unit "d" init <normal, 2.0e-02>
fsdp.param @e : tensor<4x4xf32> unit "e" init <normal, 2.0e-02>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %ends = fsdp.read @ends {fsdp.structure = #fsdp.structure<"u">} : tensor<4x4xf32>
  %both = fsdp.read @both {fsdp.structure = #fsdp.structure<"u">} : tensor<4x4xf32>
  %early = fsdp.read @early {fsdp.structure = #fsdp.structure<"u">} : tensor<4x4xf32>
  %inner = fsdp.read @inner {fsdp.structure = #fsdp.structure<"u">} : tensor<4x4xf32>
  %a = fsdp.read @a {fsdp.structure = #fsdp.structure<"a">} : tensor<4x4xf32>
  %b = fsdp.read @b {fsdp.structure = #fsdp.structure<"b">} : tensor<4x4xf32>
  %c = fsdp.read @c {fsdp.structure = #fsdp.structure<"u.stage2">} : tensor<4x4xf32>
  %d = fsdp.read @d {fsdp.structure = #fsdp.structure<"d">} : tensor<4x4xf32>
  %e = fsdp.read @e {fsdp.structure = #fsdp.structure<"e">} : tensor<4x4xf32>
  %0 = nn.einsum "bi,io->bo" %x, %a {fsdp.structure = #fsdp.structure<"a">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.einsum "bi,io->bo" %0, %ends {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %2 = nn.einsum "bi,io->bo" %1, %both {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.einsum "bi,io->bo" %2, %early {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %4 = nn.einsum "bi,io->bo" %3, %b {fsdp.structure = #fsdp.structure<"b">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %5 = nn.einsum "bi,io->bo" %4, %early {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %6 = nn.einsum "bi,io->bo" %5, %c {fsdp.structure = #fsdp.structure<"u.stage2">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %7 = nn.einsum "bi,io->bo" %6, %ends {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %8 = nn.einsum "bi,io->bo" %7, %both {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %9 = nn.einsum "bi,io->bo" %8, %inner {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %10 = nn.einsum "bi,io->bo" %9, %d {fsdp.structure = #fsdp.structure<"d">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %11 = nn.einsum "bi,io->bo" %10, %ends {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %12 = nn.einsum "bi,io->bo" %11, %both {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %13 = nn.einsum "bi,io->bo" %12, %e {fsdp.structure = #fsdp.structure<"e">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %14 = nn.einsum "bi,io->bo" %13, %ends {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %15 = nn.einsum "bi,io->bo" %14, %both {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %16 = nn.einsum "bi,io->bo" %15, %early {fsdp.structure = #fsdp.structure<"u">} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %16 {fsdp.structure = #fsdp.structure<"u">} : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<32.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
