// RUN: fsdp-opt %s --fsdp-derive-evaluation --verify-diagnostics

// expected-remark @below {{used here}}
fsdp.param @evaluate : tensor<3xf32> unit "w" init <constant, 0.0>
// expected-error @below {{cannot derive its evaluation: the symbol 'evaluate' is already used; rename it or write the evaluation step}}
fsdp.step @train train optimizer <sgd, lr = 0.1> {
}
