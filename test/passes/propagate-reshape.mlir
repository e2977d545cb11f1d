// A dimension that is split over several axes is reshaped: where the first factor is split completely, the next one takes what is left, be
// it another dimension of the result.
// RUN: split-file %s %t
// RUN: fsdp-opt %t/split.mlir --fsdp-propagate | %{plain} | FileCheck %s --check-prefix=SPLIT
// RUN: fsdp-opt %t/uneven.mlir --fsdp-propagate | %{plain} | FileCheck %s --check-prefix=UNEVEN
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %t/split.mlir %t/numbers

//--- split.mlir
// SPLIT: nn.rearrange "(p q) -> p q" {{.*}}[{"b"}, {"a"}]
// The minor factor stands first.
// SPLIT: nn.rearrange "(p q) -> q p" {{.*}}[{"a"}, {"b"}]
// SPLIT-NOT: fsdp.reshard
fsdp.mesh @mesh <["a"=2, "b"=2]>
fsdp.param @w : tensor<8x8xf32> unit "u" init <normal, 0.5> placement <replicated, gather = f32, reduce = f32, reshard = always>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<3x8xf32>
  %w = fsdp.read @w : tensor<8x8xf32>
  %y = nn.einsum "bi,io->ob" %x, %w : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<8x3xf32>
  %h = fsdp.constraint %y <@mesh, [{"b", "a"}, {}]> : tensor<8x3xf32>
  %sums = nn.reduce sum "d n -> d" %h : tensor<8x3xf32> -> tensor<8xf32>
  %first = nn.rearrange "(p q) -> p q" %sums : tensor<8xf32> -> tensor<2x4xf32>
  %second = nn.rearrange "(p q) -> q p" %sums {p = 2} : tensor<8xf32> -> tensor<4x2xf32>
  %both = nn.einsum "pq,qp->pq" %first, %second : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
  %sum = nn.reduce sum "p q ->" %both : tensor<2x4xf32> -> tensor<f64>
  %count = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %count
}

//--- uneven.mlir
// A factor that is not split completely leaves nothing to the next; nor does a factor take what does not divide it.
// UNEVEN: nn.rearrange "(p q) -> p q" {{.*}}[{"b"}, {}]
// UNEVEN: nn.rearrange "(p q) -> p q" {{.*}}[{"b"}, {}]
fsdp.mesh @mesh <["a"=3, "b"=2]>
fsdp.step @evaluate evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
  %h = fsdp.constraint %x <@mesh, [{"b", "a"}]> : tensor<8xf32>
  %first = nn.rearrange "(p q) -> p q" %h : tensor<8xf32> -> tensor<2x4xf32>
  %z = fsdp.input "z" sample_dim 0 : tensor<48xf32>
  %k = fsdp.constraint %z <@mesh, [{"b", "a"}]> : tensor<48xf32>
  %second = nn.rearrange "(p q) -> p q" %k : tensor<48xf32> -> tensor<4x12xf32>
}
