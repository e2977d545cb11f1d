// RUN: fsdp-opt %s --fsdp-apply-optimizer --verify-diagnostics

// expected-error @below {{has no 'fsdp.output "loss"'; run 'fsdp-differentiate' first}}
fsdp.step @train train optimizer <sgd, lr = 0.1> {
  %sum = arith.constant dense<3.0> : tensor<f64>
  fsdp.loss %sum over %sum
}
