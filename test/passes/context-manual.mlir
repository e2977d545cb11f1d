// An axis `context` that only a manual region uses: the model has no tokens, and marks no positions. Outside of the region its ranks compute the same.
// RUN: fsdp-opt %s --fsdp-to-local | FileCheck %s
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t
// RUN: %{python} %S/Inputs/same_numbers.py fsdp-opt fsdp-run %s %t accumulate=2 remat=full
// Without the region the axis is an error, which names the ways to use it.
// RUN: sed 's/fsdp.manual(%%x, %%w) over \["context"\].*/nn.einsum "bi,io->bo" %%x, %%w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>/; /^      out/d; /^  ^bb0/,/^  }$/d' %s | not fsdp-opt --fsdp-to-global 2>&1 | FileCheck %s --check-prefix=UNUSED

// Attention keeps contiguous order where a region takes its positions: the remark names the region.
// RUN: fsdp-opt %S/Inputs/region_of_positions.mlir --fsdp-inline-manual --fsdp-context-parallel -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not fsdp-opt %S/Inputs/region_of_positions.mlir --fsdp-inline-manual --fsdp-context-parallel=order=zigzag 2>&1 | FileCheck %s --check-prefix=ZIGZAG
// ORDER: positions in contiguous order, as the manual region over context that takes 'residual' depends on the order of positions, the busiest rank computing 1.44 times the mean of scores
// ZIGZAG: error: {{.*}}--context-order=zigzag: the manual region over context that takes 'residual' depends on the order of positions; use --context-order=contiguous, or auto

// CHECK-LABEL: fsdp.segment @train
// CHECK: fsdp.all_reduce sum %{{.*}} over ["context"]{{.*}} : tensor<4x4xf32>
// UNUSED: error: the mesh splits sequences over context=2, but the model has no tokens and marks no positions; write sequenceParallel(x) on its residual stream, compute with the axis in a manual region, or use another axis
fsdp.mesh @mesh <["fsdp"=2, "context"=2]>
fsdp.param @w : tensor<4x4xf32> unit "w" init <normal, 0.5>
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %w = fsdp.read @w : tensor<4x4xf32>
  %y = fsdp.manual(%x, %w) over ["context"] in [#fsdp.sharding<@mesh, [{}, {"context"}]>, #fsdp.sharding<@mesh, [{"context"}, {}]>]
      out [#fsdp.sharding<@mesh, [{}, {}]>] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%columns: tensor<8x2xf32>, %rows: tensor<2x4xf32>):
    %p = nn.einsum "bi,io->bo" %columns, %rows : (tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    %s = fsdp.psum %p over ["context"] : tensor<8x4xf32>
    fsdp.yield %s : tensor<8x4xf32>
  }
  %t = math.tanh %y : tensor<8x4xf32>
  %sum = nn.reduce sum "b o ->" %t : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  fsdp.loss %sum over %weight
}
