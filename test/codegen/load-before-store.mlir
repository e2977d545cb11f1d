// A result may take the place of an operand, and a product stands in the place of the first result: every
// element is loaded once, and nothing is loaded after a store.
// Inputs stand for weights here, with batches of other sizes, which a verified schedule has not.
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-translate --fsdp-to-cpp %t.mlir | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t.mlir | FileCheck %s --check-prefix=CUDA

// The product, used by one op and stored as f32, in the place of a result that is stored before.
// CHECK-LABEL: void stored(std::int64_t begin, std::int64_t end,
// CHECK:         const float [[Q:[a-z0-9_]+]] = float(einsum[{{.*}}]);
// CHECK-NOT:     einsum[
// CHECK:         stored_0[{{.*}}] = maximumf;
// CHECK-NEXT:    stored_1[{{.*}}] = [[Q]];
// CHECK-NEXT:  }

// The same where a sum takes it.
// CHECK-LABEL: void summed(std::int64_t begin, std::int64_t end,
// CHECK:         const float [[S:[a-z0-9_]+]] = float(einsum[{{.*}}]);
// CHECK-NOT:     einsum[
// CHECK:         summed_0[{{.*}}] = subf;
// CHECK-NEXT:    summed_1[o] = summed_1[o] + [[S]];

// CUDA-LABEL: __global__ void stored_kernel(
// CUDA:         const float [[Q:[a-z0-9_]+]] = toFloat(einsum{{.*}});
// CUDA-NOT:     einsum[
// CUDA:         stored_0{{.*}} =
// CUDA-NEXT:    stored_1{{.*}} = [[Q]];
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %g = fsdp.input "g" sample_dim 0 : tensor<9x6xf32>
      %h = fsdp.input "h" sample_dim 0 : tensor<6x7xf32>
      %x = fsdp.input "x" sample_dim 0 : tensor<9x7xf32>
      %a = arith.truncf %g : tensor<9x6xf32> to tensor<9x6xbf16>
      %b = arith.truncf %h : tensor<6x7xf32> to tensor<6x7xbf16>
      %z = arith.constant dense<0.0> : tensor<9x7xf32>

      %q = nn.einsum "bi,io->bo" %a, %b : (tensor<9x6xbf16>, tensor<6x7xbf16>) -> tensor<9x7xbf16>
      %w = arith.extf %q : tensor<9x7xbf16> to tensor<9x7xf32> loc("stored")
      %d = arith.subf %w, %x : tensor<9x7xf32>
      %m = arith.maximumf %d, %z : tensor<9x7xf32>
      %n = arith.truncf %m : tensor<9x7xf32> to tensor<9x7xbf16> loc("stored")
      %n1 = nn.softmax %n : tensor<9x7xbf16>
      %w1 = nn.softmax %w : tensor<9x7xf32>

      %s:2 = nn.fused %a, %b, %x : (tensor<9x6xbf16>, tensor<6x7xbf16>, tensor<9x7xf32>) -> (tensor<9x7xbf16>, tensor<7xf32>) {
      ^bb0(%l: tensor<9x6xbf16>, %r: tensor<6x7xbf16>, %y: tensor<9x7xf32>):
        %0 = nn.einsum "bi,io->bo" %l, %r : (tensor<9x6xbf16>, tensor<6x7xbf16>) -> tensor<9x7xbf16>
        %1 = arith.extf %0 : tensor<9x7xbf16> to tensor<9x7xf32>
        %2 = arith.subf %1, %y : tensor<9x7xf32>
        %3 = arith.truncf %2 : tensor<9x7xf32> to tensor<9x7xbf16>
        %4 = nn.reduce sum "b o -> o" %1 : tensor<9x7xf32> -> tensor<7xf32>
        nn.yield %3, %4 : tensor<9x7xbf16>, tensor<7xf32>
      } loc("summed")
      %n2 = nn.softmax %s#0 : tensor<9x7xbf16>
    }
  }
}
