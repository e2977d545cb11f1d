// bf16 is a type of memory: loads widen, arithmetic is in float, stores round.
// RUN: fsdp-translate --fsdp-to-cpp %s | FileCheck %s

// CHECK-LABEL: void cast(const float *x, bf16 *narrow)
// CHECK: narrow[i] = x[i];
// CHECK-LABEL: void chain(const bf16 *narrow, bf16 *out, float *wide)
// CHECK: const float mulf = float(narrow[i]) * 0.5f;
// CHECK-NEXT: const float negf = -mulf;
// CHECK-NEXT: out[i] = mulf;
// CHECK-NEXT: wide[i] = negf;
// A sum that a bf16 result could not hold while it grows: reductions are the inner loops, in float.
// CHECK-LABEL: void columns(const bf16 *m, bf16 *sums)
// CHECK-NEXT: for (std::int64_t c = 0; c < 3; ++c) {
// CHECK-NEXT: float total = 0.0f;
// CHECK-NEXT: for (std::int64_t r = 0; r < 4; ++r)
// CHECK: total = total + float(m[c + r * 3]);
// CHECK: sums[c] = total;
// CHECK: gemm(c, kCompute, "narrow"
// CHECK: arena::a, arena::b, arena::ab);
// CHECK: gemm(c, kCompute, "wide"
// CHECK: arena::a, arena::b, arena::ab_wide);
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 4096 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %x = fsdp.buffer "x" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %n = fsdp.buffer "narrow" offset 192 : !fsdp.buffer<tensor<8xbf16>>
      %o = fsdp.buffer "out" offset 256 : !fsdp.buffer<tensor<8xbf16>>
      %w = fsdp.buffer "wide" offset 320 : !fsdp.buffer<tensor<8xf32>>
      %m = fsdp.buffer "m" offset 384 : !fsdp.buffer<tensor<4x3xbf16>>
      %sums = fsdp.buffer "sums" offset 448 : !fsdp.buffer<tensor<3xbf16>>
      %a = fsdp.buffer "a" offset 512 : !fsdp.buffer<tensor<4x6xbf16>>
      %b = fsdp.buffer "b" offset 576 : !fsdp.buffer<tensor<6x5xbf16>>
      %ab = fsdp.buffer "ab" offset 640 : !fsdp.buffer<tensor<4x5xbf16>>
      %abw = fsdp.buffer "ab.wide" offset 704 : !fsdp.buffer<tensor<4x5xf32>>
      %t0 = fsdp.launch "cast" on "compute" ins(%x : !fsdp.buffer<tensor<8xf32>>) outs(%n : !fsdp.buffer<tensor<8xbf16>>) {
      ^bb0(%l: tensor<8xf32>):
        %v = arith.truncf %l : tensor<8xf32> to tensor<8xbf16>
        fsdp.yield %v : tensor<8xbf16>
      }
      %t1 = fsdp.launch "chain" on "compute" ins(%n : !fsdp.buffer<tensor<8xbf16>>) outs(%o, %w : !fsdp.buffer<tensor<8xbf16>>, !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%l: tensor<8xbf16>):
        %half = arith.constant dense<0.5> : tensor<8xbf16>
        %v = arith.mulf %l, %half : tensor<8xbf16>
        %e = arith.extf %v : tensor<8xbf16> to tensor<8xf32>
        %r = arith.negf %e : tensor<8xf32>
        fsdp.yield %v, %r : tensor<8xbf16>, tensor<8xf32>
      }
      %t2 = fsdp.launch "columns" on "compute" ins(%m : !fsdp.buffer<tensor<4x3xbf16>>) outs(%sums : !fsdp.buffer<tensor<3xbf16>>) {
      ^bb0(%l: tensor<4x3xbf16>):
        %v = nn.reduce sum "r c -> c" %l : tensor<4x3xbf16> -> tensor<3xbf16>
        fsdp.yield %v : tensor<3xbf16>
      }
      %t3 = fsdp.launch "narrow" on "compute" ins(%a, %b : !fsdp.buffer<tensor<4x6xbf16>>, !fsdp.buffer<tensor<6x5xbf16>>) outs(%ab : !fsdp.buffer<tensor<4x5xbf16>>) {
      ^bb0(%l: tensor<4x6xbf16>, %r: tensor<6x5xbf16>):
        %v = nn.einsum "ab,bc->ac" %l, %r : (tensor<4x6xbf16>, tensor<6x5xbf16>) -> tensor<4x5xbf16>
        fsdp.yield %v : tensor<4x5xbf16>
      }
      %t4 = fsdp.launch "wide" on "compute" ins(%a, %b : !fsdp.buffer<tensor<4x6xbf16>>, !fsdp.buffer<tensor<6x5xbf16>>) outs(%abw : !fsdp.buffer<tensor<4x5xf32>>) {
      ^bb0(%l: tensor<4x6xbf16>, %r: tensor<6x5xbf16>):
        %v = nn.einsum "ab,bc->ac" %l, %r : (tensor<4x6xbf16>, tensor<6x5xbf16>) -> tensor<4x5xf32>
        fsdp.yield %v : tensor<4x5xf32>
      }
    }
  }
}
