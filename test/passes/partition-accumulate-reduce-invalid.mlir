// RUN: fsdp-opt --verify-diagnostics --fsdp-partition=accumulate-reduce=never %s
// expected-error @below {{option 'accumulate-reduce' is 'never', expected auto, each or last}}
module {
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @w : tensor<3xf32> unit "layer" init <constant, 1.0>
  fsdp.step @evaluate evaluate {
    %w = fsdp.read @w : tensor<3xf32>
  }
}
