// A region has 1 of 3 rows on each rank. Behind its axis no other splits them: a rank's part of 9, most of them padding, would be other rows.
// RUN: fsdp-opt --fsdp-to-global %s 2> /dev/null | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t.ddp strategy=ddp remat=full
// CHECK: fsdp.exit_manual {{.*}} <@mesh, [{}, {"tensor"}, {}]> over ["tensor"] {fsdp.shardings = [#fsdp.sharding<@mesh, [{{.*}}, {"tensor"}, {}]>]
fsdp.mesh @mesh <["tensor"=3, "fsdp"=3]>
fsdp.param @p : tensor<3x6xf32> unit "u" init <uniform, 6.0e-01>
fsdp.param @w : tensor<6x6xf32> unit "w" init <uniform, 6.0e-01> split [[], ["tensor"]]
fsdp.step @train train optimizer <adam, lr = 5.0e-02, eps = 1.0e-03> {
  %x = fsdp.input "x" sample_dim 0 : tensor<2x3x6xf32>
  %p = fsdp.read @p : tensor<3x6xf32>
  %r = nn.repeat "c a -> b c a" %p : tensor<3x6xf32> -> tensor<2x3x6xf32>
  %y = arith.mulf %x, %r : tensor<2x3x6xf32>
  %rows = fsdp.constraint %y <@mesh, [{?}, {"tensor", "fsdp"}, {?}]> : tensor<2x3x6xf32>
  %w = fsdp.read @w : tensor<6x6xf32>
  %z = fsdp.manual(%rows, %w) over ["tensor"] in [#fsdp.sharding<@mesh, [{}, {"tensor"}, {}]>, #fsdp.sharding<@mesh, [{}, {"tensor"}]>] out [#fsdp.sharding<@mesh, [{}, {}, {"tensor"}]>] : (tensor<2x3x6xf32>, tensor<6x6xf32>) -> tensor<2x1x6xf32> {
  ^bb0(%row: tensor<2x1x6xf32>, %columns: tensor<6x2xf32>):
    %part = nn.einsum "bck,km->bcm" %row, %columns : (tensor<2x1x6xf32>, tensor<6x2xf32>) -> tensor<2x1x2xf32>
    fsdp.yield %part : tensor<2x1x2xf32>
  }
  %t = math.tanh %z : tensor<2x1x6xf32>
  %sum = nn.reduce sum "b n m ->" %t : tensor<2x1x6xf32> -> tensor<f64>
  %five = arith.constant dense<5.0> : tensor<f64>
  fsdp.loss %sum over %five
}
