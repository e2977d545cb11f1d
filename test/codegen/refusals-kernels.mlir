// Bodies of launches that are no kernel of the CPU target.
// RUN: fsdp-translate --fsdp-to-cpp --split-input-file --verify-diagnostics %s

module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %t = fsdp.launch "half" on "compute" ins(%a : !fsdp.buffer<tensor<8xf32>>) outs(%a : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%x: tensor<8xf32>):
        // expected-error @below {{has element type 'f16', which this target cannot compute with; use f32}}
        %h = arith.truncf %x : tensor<8xf32> to tensor<8xf16>
        %v = arith.extf %h : tensor<8xf16> to tensor<8xf32>
        fsdp.yield %v : tensor<8xf32>
      }
    }
  }
}

// -----

// An op of arith that stands for no arithmetic of this target.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %t = fsdp.launch "floor" on "compute" ins(%a : !fsdp.buffer<tensor<8xf32>>) outs(%a : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%x: tensor<8xf32>):
        // expected-error @below {{has no C++ form; it cannot be in a launch of this target}}
        %v = math.floor %x : tensor<8xf32>
        fsdp.yield %v : tensor<8xf32>
      }
    }
  }
}

// -----

// A reduction in the middle of a kernel.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<f32>>
      %t = fsdp.launch "root" on "compute" ins(%a : !fsdp.buffer<tensor<8xf32>>) outs(%b : !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<8xf32>):
        // expected-error @below {{is in the middle of a kernel, expected it at the end}}
        %v = nn.reduce sum "a ->" %x : tensor<8xf32> -> tensor<f32>
        %w = math.sqrt %v : tensor<f32>
        fsdp.yield %w : tensor<f32>
      }
    }
  }
}

// -----

// Two reductions.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<f32>>
      %c = fsdp.buffer "c" offset 256 : !fsdp.buffer<tensor<f32>>
      // expected-error @below {{'both' ends in two reductions, expected one per kernel}}
      %t = fsdp.launch "both" on "compute" ins(%a : !fsdp.buffer<tensor<8xf32>>) outs(%b, %c : !fsdp.buffer<tensor<f32>>, !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<8xf32>):
        %v = nn.reduce sum "a ->" %x : tensor<8xf32> -> tensor<f32>
        %w = nn.reduce max "a ->" %x : tensor<8xf32> -> tensor<f32>
        fsdp.yield %v, %w : tensor<f32>, tensor<f32>
      }
    }
  }
}

// -----

// Results of different shapes.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<f32>>
      // expected-error @below {{'both' yields 'tensor<f32>', which does not fit the loops of its other results}}
      %t = fsdp.launch "both" on "compute" ins(%a, %b : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<f32>>) outs(%a, %b : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<f32>>) {
      ^bb0(%x: tensor<8xf32>, %y: tensor<f32>):
        %v = arith.negf %x : tensor<8xf32>
        %w = arith.negf %y : tensor<f32>
        fsdp.yield %v, %w : tensor<8xf32>, tensor<f32>
      }
    }
  }
}

// -----

// A split of a dimension that runs over other loops.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<2x4xf32>>
      %b = fsdp.buffer "b" offset 192 : !fsdp.buffer<tensor<8xf32>>
      %t = fsdp.launch "join" on "compute" ins(%a : !fsdp.buffer<tensor<2x4xf32>>) outs(%b : !fsdp.buffer<tensor<8xf32>>) {
      ^bb0(%x: tensor<2x4xf32>):
        // expected-error @below {{does not fit the loops of its kernel; use a separate launch}}
        %v = nn.rearrange "a b -> (a b)" %x : tensor<2x4xf32> -> tensor<8xf32>
        %w = arith.negf %v : tensor<8xf32>
        fsdp.yield %w : tensor<8xf32>
      }
    }
  }
}

// -----

// An element type that the runtime does not know.
module attributes {fsdp.phase = "scheduled"} {
  fsdp.program @all role {} arena 512 {
    %s = fsdp.buffer "step_state" persistent offset 0 : !fsdp.buffer<tensor<16xi64>>
    fsdp.segment @train train next [@train] {
      // expected-error @below {{has element type 'f16', which the runtime of this target does not support; use f32}}
      %a = fsdp.buffer "a" offset 128 : !fsdp.buffer<tensor<8xf16>>
      %t = fsdp.launch "neg" on "compute" ins(%a : !fsdp.buffer<tensor<8xf16>>) outs(%a : !fsdp.buffer<tensor<8xf16>>) {
      ^bb0(%x: tensor<8xf16>):
        %v = arith.negf %x : tensor<8xf16>
        fsdp.yield %v : tensor<8xf16>
      }
    }
  }
}
