// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// A body of which only the first block parses is freed while an op in front of it uses a value of that block.
// The memory that this use wrote to was handed out again while the next module was parsed, whose
// constants take blocks of the same size: "malloc(): unaligned tcache chunk detected".

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %y = arith.negf %x : tensor<8xf32>
    %t = fsdp.launch "l" on "compute" {
      %x = arith.constant dense<1.0> : tensor<8xf32>
      %w = arith.constant dense<1.0> : tensor<8xf32>
    ^bb1:
      // expected-error @below {{expected operation name in quotes}}
      %z = 1
    }
  }
}

// -----

func.func @next() {
  %a = arith.constant dense<1.0> : tensor<8xf32>
  %b = arith.constant dense<1.0> : tensor<8xf32>
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %d = arith.constant dense<1.0> : tensor<8xf32>
  return
}

// -----

func.func @fused(%x: tensor<8xf32>) {
  %y = arith.negf %a : tensor<8xf32>
  %r = nn.fused %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%b: tensor<8xf32>):
    %a = arith.constant dense<1.0> : tensor<8xf32>
    %w = arith.constant dense<1.0> : tensor<8xf32>
  ^bb1:
    // expected-error @below {{expected operation name in quotes}}
    %z = 1
  }
  return
}

// -----

func.func @next() {
  %a = arith.constant dense<1.0> : tensor<8xf32>
  %b = arith.constant dense<1.0> : tensor<8xf32>
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %d = arith.constant dense<1.0> : tensor<8xf32>
  return
}

// -----

%y = arith.negf %x : tensor<8xf32>
fsdp.step @evaluate evaluate {
  %x = arith.constant dense<1.0> : tensor<8xf32>
  %w = arith.constant dense<1.0> : tensor<8xf32>
^bb1:
  // expected-error @below {{expected operation name in quotes}}
  %z = 1
}

// -----

func.func @next() {
  %a = arith.constant dense<1.0> : tensor<8xf32>
  %b = arith.constant dense<1.0> : tensor<8xf32>
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %d = arith.constant dense<1.0> : tensor<8xf32>
  return
}

// -----

%y = arith.negf %x : tensor<8xf32>
fsdp.program @p role {} {
  %x = arith.constant dense<1.0> : tensor<8xf32>
  %w = arith.constant dense<1.0> : tensor<8xf32>
^bb1:
  // expected-error @below {{expected operation name in quotes}}
  %z = 1
}

// -----

func.func @next() {
  %a = arith.constant dense<1.0> : tensor<8xf32>
  %b = arith.constant dense<1.0> : tensor<8xf32>
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %d = arith.constant dense<1.0> : tensor<8xf32>
  return
}

// -----

fsdp.program @p role {} {
  %y = arith.negf %x : tensor<8xf32>
  fsdp.segment @s train next [@s] {
    %x = arith.constant dense<1.0> : tensor<8xf32>
    %w = arith.constant dense<1.0> : tensor<8xf32>
  ^bb1:
    // expected-error @below {{expected operation name in quotes}}
    %z = 1
  }
}

// -----

func.func @next() {
  %a = arith.constant dense<1.0> : tensor<8xf32>
  %b = arith.constant dense<1.0> : tensor<8xf32>
  %c = arith.constant dense<1.0> : tensor<8xf32>
  %d = arith.constant dense<1.0> : tensor<8xf32>
  return
}
