// RUN: fsdp-opt %s --fsdp-apply-optimizer --split-input-file | %{plain} | FileCheck %s

fsdp.param @w : tensor<4x3xf32> unit "w" init <constant, 0.0>
fsdp.param @b : tensor<3xf32> unit "w" init <constant, 0.0>

// Without clipping the scale is 1. The norm takes the gradients in their order; updates follow the
// guard, which looks at loss and norm; nothing follows the advance. Evaluation is not touched.
// CHECK-LABEL: fsdp.step @train
// CHECK-NEXT: %[[LOSS:.*]] = arith.constant
// CHECK-NEXT: fsdp.output "loss" %[[LOSS]]
// CHECK-NEXT: %[[GB:.*]] = arith.constant dense<1.000000e+00> : tensor<3xf32>
// CHECK-NEXT: %[[GW:.*]] = arith.constant dense<2.000000e+00> : tensor<4x3xf32>
// CHECK-NEXT: %[[NORM:.*]] = fsdp.global_norm [@b, @w] %[[GB]], %[[GW]] : tensor<3xf32>, tensor<4x3xf32>
// CHECK-NEXT: fsdp.output "grad_norm" %[[NORM]]
// CHECK-NEXT: %[[LR:.*]] = fsdp.learning_rate <adamw
// CHECK-NEXT: fsdp.output "lr" %[[LR]]
// CHECK-NEXT: %[[SCALE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[OK:.*]] = fsdp.acceptable %[[LOSS]] norm %[[NORM]]
// CHECK-NEXT: fsdp.update @b, %[[GB]] lr %[[LR]] scale %[[SCALE]] if %[[OK]] <adamw
// CHECK-NEXT: fsdp.update @w, %[[GW]] lr %[[LR]] scale %[[SCALE]] if %[[OK]] <adamw
// CHECK-NEXT: fsdp.advance if %[[OK]]
// CHECK-NEXT: }
// CHECK-LABEL: fsdp.step @evaluate
// CHECK-NOT: fsdp.advance
fsdp.step @train train optimizer <adamw, lr = 3.0e-04> {
  %loss = arith.constant dense<3.0> : tensor<f32>
  fsdp.output "loss" %loss
  %gb = arith.constant dense<1.0> : tensor<3xf32>
  fsdp.gradient @b, %gb : tensor<3xf32>
  %gw = arith.constant dense<2.0> : tensor<4x3xf32>
  fsdp.gradient @w, %gw : tensor<4x3xf32>
}
fsdp.step @evaluate evaluate {
  %loss = arith.constant dense<3.0> : tensor<f32>
  fsdp.output "loss" %loss
}

// -----

// With clipping the scale is that of the norm; the norm to clip to is the run's.
// CHECK-LABEL: fsdp.step @clipped
// CHECK: %[[NORM:.*]] = fsdp.global_norm
// CHECK: %[[SCALE:.*]] = fsdp.clip_scale <sgd, lr = 1.000000e-01, clip = 5.000000e-01> %[[NORM]]
// CHECK: fsdp.update @w, %{{.*}} lr %{{.*}} scale %[[SCALE]]
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
fsdp.step @clipped train optimizer <sgd, lr = 0.1, clip = 0.5> {
  %loss = arith.constant dense<3.0> : tensor<f32>
  fsdp.output "loss" %loss
  %g = arith.constant dense<1.0> : tensor<3xf32>
  fsdp.gradient @w, %g : tensor<3xf32>
}

// -----

// A check that has counted something stands for a loss that is not finite.
fsdp.param @w : tensor<3xf32> unit "w" init <constant, 0.0>
// CHECK-LABEL: fsdp.step @checked
// CHECK: %[[LOSS:.*]] = arith.constant dense<3.000000e+00>
// CHECK: %[[A:.*]] = arith.constant dense<1.000000e+00>
// CHECK: %[[B:.*]] = arith.constant dense<2.000000e+00>
// CHECK: %[[NORM:.*]] = fsdp.global_norm
// CHECK: %[[COUNT:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[FAILED:.*]] = arith.cmpf ogt, %[[COUNT]], %[[ZERO]]
// CHECK: %[[INFINITY:.*]] = arith.constant dense<0x7F800000>
// CHECK: %[[CHECKED:.*]] = arith.select %[[FAILED]], %[[INFINITY]], %[[LOSS]]
// CHECK: fsdp.acceptable %[[CHECKED]] norm %[[NORM]]
fsdp.step @checked train optimizer <sgd, lr = 0.1> {
  %loss = arith.constant dense<3.0> : tensor<f32>
  fsdp.output "loss" %loss
  %a = arith.constant dense<1.0> : tensor<f32>
  fsdp.output "a.check" %a check 0
  %b = arith.constant dense<2.0> : tensor<f32>
  fsdp.output "b.check" %b check 1
  %g = arith.constant dense<1.0> : tensor<3xf32>
  fsdp.gradient @w, %g : tensor<3xf32>
}
