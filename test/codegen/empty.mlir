// Tensors without elements and scalars: loops that never run, identities, no loop at all.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s

// CHECK-LABEL: void nothing(
// CHECK-NEXT:    #pragma omp simd
// CHECK-NEXT:    for (std::int64_t i = 0; i < 0; ++i) {
// CHECK-LABEL: void sum(
// CHECK-NEXT:    std::fill_n(b, 4, 0.0f);
// CHECK-NEXT:    for (std::int64_t x = 0; x < 0; ++x) {
// CHECK-LABEL: void largest(
// CHECK:         float total = -__builtin_inff();
// CHECK-NEXT:    for (std::int64_t i = 0; i < 0; ++i) {
// CHECK:         scalar[0] = total;
// CHECK-LABEL: void mean(
// CHECK:         scalar[0] = total / 0.0f;
// CHECK-LABEL: void scalar(
// CHECK-NEXT:    scalar_2[0] = -scalar[0];
// CHECK-NEXT:  }
// A copy, and a constant that is stored.
// CHECK-LABEL: void copy(
// CHECK:         for (std::int64_t i = 0; i < 4; ++i) {
// CHECK-NEXT:      c[i] = b[i];
// CHECK-LABEL: void fill(
// CHECK:           b[i] = 1.5f;
// Parts that could not be computed in their place.
// CHECK-LABEL: void join(
// CHECK-NEXT:    std::copy_n(part_0, 4, flat + 0);
// CHECK-NEXT:    std::fill_n(flat + 4, 1, 1.5f);
// CHECK-NEXT:    std::fill_n(flat + 5, 3, 0.0f);

module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 1024 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<0x4xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<4xf32>>
      %c = fsdp.buffer "c" offset 256 : !fsdp.buffer<tensor<4xf32>>
      %f = fsdp.buffer "flat" offset 384 : !fsdp.buffer<tensor<8xf32>>
      %d = fsdp.buffer "scalar" offset 320 : !fsdp.buffer<tensor<f32>>
      %t0 = fsdp.launch "nothing" on "compute" ins(%a : !fsdp.buffer<tensor<0x4xf32>>) outs(%a : !fsdp.buffer<tensor<0x4xf32>>) {
      ^bb0(%u: tensor<0x4xf32>):
        %v = math.exp %u : tensor<0x4xf32>
        fsdp.yield %v : tensor<0x4xf32>
      }
      %t1 = fsdp.launch "sum" on "compute" ins(%a : !fsdp.buffer<tensor<0x4xf32>>) outs(%b : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%u: tensor<0x4xf32>):
        %v = nn.reduce sum "x y -> y" %u : tensor<0x4xf32> -> tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
      %t2 = fsdp.launch "largest" on "compute" ins(%a : !fsdp.buffer<tensor<0x4xf32>>) outs(%d : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%u: tensor<0x4xf32>):
        %v = nn.reduce max "x y ->" %u : tensor<0x4xf32> -> tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %t3 = fsdp.launch "mean" on "compute" ins(%a : !fsdp.buffer<tensor<0x4xf32>>) outs(%d : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%u: tensor<0x4xf32>):
        %v = nn.reduce mean "x y ->" %u : tensor<0x4xf32> -> tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %t4 = fsdp.launch "scalar" on "compute" ins(%d : !fsdp.buffer<tensor<f32>>) outs(%d : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%u: tensor<f32>):
        %v = arith.negf %u : tensor<f32>
        fsdp.yield %v : tensor<f32>
      }
      %t5 = fsdp.launch "copy" on "compute" ins(%b : !fsdp.buffer<tensor<4xf32>>) outs(%c : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%u: tensor<4xf32>):
        fsdp.yield %u : tensor<4xf32>
      }
      %t6 = fsdp.launch "fill" on "compute" outs(%b : !fsdp.buffer<tensor<4xf32>>) {
        %v = arith.constant dense<1.5> : tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
      %t7 = fsdp.launch "join" on "compute" ins(%b : !fsdp.buffer<tensor<4xf32>>) outs(%f : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%u: tensor<4xf32>):
        %k = arith.constant dense<1.5> : tensor<1xf32>
        %v = fsdp.flatten %u, %k : (tensor<4xf32>, tensor<1xf32>) -> tensor<8xf32>
        fsdp.yield %v : tensor<8xf32>
      }
    }
  }
}
