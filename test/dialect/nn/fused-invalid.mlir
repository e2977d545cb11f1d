// RUN: fsdp-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics

func.func @fused_c1_arguments(%x: tensor<8xf32>) {
  // expected-error @below {{block has arguments 'tensor<4xf32>', expected the types of the operands 'tensor<8xf32>'}}
  %r = nn.fused %x : (tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @fused_c1_results(%x: tensor<8xf32>) {
  %r = nn.fused %x : (tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<8xf32>):
    // expected-error @below {{yields 'tensor<8xf32>', expected the results of 'nn.fused' 'tensor<4xf32>'}}
    nn.yield %a : tensor<8xf32>
  }
  return
}

// -----

func.func @fused_c2_yield(%x: tensor<8xf32>) {
  // expected-error @below {{block does not end with 'nn.yield'}}
  "nn.fused"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    "test.end"() : () -> ()
  }) : (tensor<8xf32>) -> ()
  return
}

// -----

fsdp.step @s evaluate {
  %x = arith.constant dense<1.0> : tensor<f32>
  nn.fused %x : (tensor<f32>) -> () {
  ^bb0(%a: tensor<f32>):
    // expected-error @below {{has side effects and cannot be in 'nn.fused'}}
    fsdp.output "x" %a
    nn.yield
  }
}
