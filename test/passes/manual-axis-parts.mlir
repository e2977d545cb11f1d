// An axis of a region of which something else names a part is cut into parts in the region as well.
// RUN: fsdp-opt --fsdp-propagate %s | FileCheck %s
// RUN: fsdp-opt --fsdp-propagate --fsdp-partition %s | FileCheck %s --check-prefix=LOCAL
// CHECK: fsdp.mesh @mesh <["fsdp"=1, "tensor:(1)2"=2, "tensor:(2)2"=2]>
// CHECK: fsdp.constraint %{{.*}} <@mesh, [{"tensor:(1)2", "tensor:(2)2", ?}, {?}]> {{.*}}manual = ["tensor:(1)2", "tensor:(2)2"]
// CHECK: fsdp.enter_manual %{{.*}} <@mesh, [{"tensor:(1)2", "tensor:(2)2"}, {}]> over ["tensor:(1)2", "tensor:(2)2"] {{.*}} : tensor<8x4xf32> -> tensor<2x4xf32>
// CHECK: fsdp.ppermute %{{.*}} from [1, 2, 3, 0] over ["tensor:(1)2", "tensor:(2)2"]
// CHECK: fsdp.exit_manual
// LOCAL: fsdp.all_slice %{{.*}} dim 0 over ["tensor:(1)2", "tensor:(2)2"] : tensor<8x4xf32> -> tensor<2x4xf32>
// LOCAL: fsdp.collective_permute %{{.*}} from [1, 2, 3, 0] over ["tensor:(1)2", "tensor:(2)2"] : tensor<2x4xf32>
fsdp.mesh @mesh <["fsdp"=1, "tensor"=4]>
fsdp.step @eval evaluate {
  %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %c = fsdp.constraint %x <@mesh, [{}, {"tensor:(1)2"}]> : tensor<8x4xf32>
  %b = fsdp.constraint %x <@mesh, [{"tensor", ?}, {?}]> {manual = ["tensor"]} : tensor<8x4xf32>
  %own = fsdp.enter_manual %b <@mesh, [{"tensor"}, {}]> over ["tensor"] : tensor<8x4xf32> -> tensor<2x4xf32>
  %next = fsdp.ppermute %own from [1, 2, 3, 0] over ["tensor"] : tensor<2x4xf32>
  %y = fsdp.exit_manual %next <@mesh, [{"tensor"}, {}]> over ["tensor"] : tensor<2x4xf32> -> tensor<8x4xf32>
  %z = arith.addf %y, %c : tensor<8x4xf32>
  %sum = nn.reduce sum "b d ->" %z : tensor<8x4xf32> -> tensor<f64>
  %weight = arith.constant dense<8.0> : tensor<f64>
  %q = arith.divf %sum, %weight : tensor<f64>
  %n = arith.truncf %q : tensor<f64> to tensor<f32>
  fsdp.output "loss" %n
}
