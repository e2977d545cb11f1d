// Names come from the model: keywords, digits and doubles become identifiers; equal kernels are one
// function; several segments have their own namespaces; constants that are no splats are tables. Functions are
// cut by the units of launches; what has none goes along with what stands before it.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s

// One function for both launches, named after what they have in common.
// CHECK:     void relu(const float *z, float *h) {
// CHECK-NOT: void relu
// A table, and a function that a keyword names.
// CHECK:     void switch_2(const float *x, float *for_2) {
// CHECK-NEXT:  static constexpr float constant_table[] = {1.0f, 2.5f, -3.0f, __builtin_inff()};
// CHECK:         for_2[i] = x[i] * constant_table[i];

// CHECK: namespace train {
// CHECK: constexpr ArenaSpan<float> fc1_z{128, 4};
// CHECK: void fc1_forward(Context &c) {
// CHECK: launch(c, kCompute, "fc1.relu", reads(arena::fc1_z), writes(arena::fc1_h), fused::relu);
// What the next function is the first to use is declared beside it.
// CHECK: constexpr ArenaSpan<float> fc1_z_2{192, 4};
// CHECK: void fc2_forward(Context &c) {
// CHECK: launch(c, kCompute, "fc2.\"b\".relu", reads(arena::fc1_z_2), writes(arena::fc1_h), fused::relu);
// CHECK: launch(c, kCompute, "switch", reads(arena::t2nd_x), writes(arena::for_2), fused::switch_2);
// CHECK: void run(Context &c) {
// CHECK-NEXT: fc1_forward(c);
// CHECK-NEXT: fc2_forward(c);
// CHECK: } // namespace train
// CHECK: namespace default_2 {
// CHECK: {.name = "default", .run = default_2::run, .trace = default_2::trace},

module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train, @default] {
      %a = fsdp.buffer "fc1.z" offset 128 : !fsdp.buffer<tensor<4xf32>>
      %b = fsdp.buffer "fc1.z" offset 192 : !fsdp.buffer<tensor<4xf32>>
      %h = fsdp.buffer "fc1.h" offset 256 : !fsdp.buffer<tensor<4xf32>>
      %x = fsdp.buffer "2nd.x" offset 320 : !fsdp.buffer<tensor<4xf32>>
      %f = fsdp.buffer "for" offset 384 : !fsdp.buffer<tensor<4xf32>>
      %t0 = fsdp.launch "fc1.relu" on "compute" of "fc1" ins(%a : !fsdp.buffer<tensor<4xf32>>) outs(%h : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%u: tensor<4xf32>):
        %z = arith.constant dense<0.0> : tensor<4xf32>
        %v = arith.maximumf %u, %z : tensor<4xf32> loc("fc1.relu")
        fsdp.yield %v : tensor<4xf32>
      }
      %t1 = fsdp.launch "fc2.\22b\22.relu" on "compute" of "fc2" ins(%b : !fsdp.buffer<tensor<4xf32>>) outs(%h : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%u: tensor<4xf32>):
        %z = arith.constant dense<0.0> : tensor<4xf32>
        %v = arith.maximumf %u, %z : tensor<4xf32> loc("fc2.relu")
        fsdp.yield %v : tensor<4xf32>
      }
      %t2 = fsdp.launch "switch" on "compute" ins(%x : !fsdp.buffer<tensor<4xf32>>) outs(%f : !fsdp.buffer<tensor<4xf32>>) {
      ^bb0(%u: tensor<4xf32>):
        %c = arith.constant dense<[1.0, 2.5, -3.0, 0x7F800000]> : tensor<4xf32>
        %v = arith.mulf %u, %c : tensor<4xf32>
        fsdp.yield %v : tensor<4xf32>
      }
    }
    fsdp.segment @default evaluate next [@train, @default] {
    }
  }
}
