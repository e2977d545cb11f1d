// Inside one kernel 16-bit floats are held in f32 in every phase: what is stored is rounded, and a product
// with which the kernel begins. Apart, every op rounds.
// RUN: fsdp-run %s --numerics=typed | FileCheck %s
// RUN: fsdp-opt %s --fsdp-schedule --fsdp-plan-memory -o %t.mlir
// RUN: fsdp-run %t.mlir --numerics=typed | FileCheck %s

// 1 + 2^-10 is 1 in bf16; the product of 1 + 2^-7 with itself is 1 + 2^-6 + 2^-14, and 1 + 2^-6 in bf16.
// CHECK: step 1 apart 1{{$}}
// CHECK-NEXT: step 1 held 1.0009765625{{$}}
// CHECK-NEXT: step 1 product 1.015625{{$}}
// CHECK-NEXT: step 1 stored 1{{$}}
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = arith.constant dense<1.0009765625> : tensor<f32>
      %n = arith.truncf %x : tensor<f32> to tensor<bf16>
      %w = arith.extf %n : tensor<bf16> to tensor<f32>
      fsdp.output "apart" %w
      %one = arith.constant dense<1.0> : tensor<f32>
      %y = arith.mulf %x, %one : tensor<f32>
      %s, %h = nn.fused %y : (tensor<f32>) -> (tensor<bf16>, tensor<f32>) {
      ^bb0(%a: tensor<f32>):
        %1 = arith.truncf %a : tensor<f32> to tensor<bf16>
        %2 = arith.extf %1 : tensor<bf16> to tensor<f32>
        nn.yield %1, %2 : tensor<bf16>, tensor<f32>
      }
      fsdp.output "held" %h
      %t = arith.extf %s : tensor<bf16> to tensor<f32>
      fsdp.output "stored" %t
      %c = arith.constant dense<1.0078125> : tensor<1x1xbf16>
      %l = arith.negf %c : tensor<1x1xbf16>
      %p = nn.fused %l : (tensor<1x1xbf16>) -> tensor<1x1xf32> {
      ^bb0(%a: tensor<1x1xbf16>):
        %1 = nn.einsum "ab,bc->ac" %a, %a : (tensor<1x1xbf16>, tensor<1x1xbf16>) -> tensor<1x1xbf16>
        %2 = arith.extf %1 : tensor<1x1xbf16> to tensor<1x1xf32>
        nn.yield %2 : tensor<1x1xf32>
      }
      %q = nn.reduce sum "a c ->" %p : tensor<1x1xf32> -> tensor<f32>
      fsdp.output "product" %q
    }
  }
}
