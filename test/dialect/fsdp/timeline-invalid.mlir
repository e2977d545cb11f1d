// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// buffer C1: offsets.

fsdp.program @p role {} {
  // expected-error @below {{has offset 32, expected a multiple of 64 from 0 to 2^48}}
  %b = fsdp.buffer "b" persistent offset 32 : !fsdp.buffer<tensor<8xf32>>
}

// -----

// buffer C2: persistent buffers stand in programs.

fsdp.program @p role {} {
  // expected-error @below {{'b' stands directly in a program; mark it persistent or move it into a segment}}
  %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
}

// -----

// buffer C3: what buffers hold of a storage.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{'b' holds "parameter", expected "gathered" or "gradient" as it is not persistent}}
    %b = fsdp.buffer "b" holds @u "parameter" : !fsdp.buffer<tensor<8xf32>>
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{'b' holds "gradient", expected "parameter", a state or "accumulator" as it is persistent}}
  %b = fsdp.buffer "b" persistent holds @u "gradient" : !fsdp.buffer<tensor<8xf32>>
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{names 'u', which is no storage}}
    %b = fsdp.buffer "b" holds @u "gathered" : !fsdp.buffer<tensor<8xf32>>
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.0>
fsdp.param @v : tensor<6xf32> unit "u" init <constant, 0.0>
fsdp.storage @u : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@w at 0>, #fsdp.member<@v at 4>]
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %enough = fsdp.buffer "enough" holds @u "gradient" : !fsdp.buffer<tensor<10xf32>>
    // expected-error @below {{'b' has 9 elements, expected at least 10, the members of storage 'u'}}
    %b = fsdp.buffer "b" holds @u "gathered" : !fsdp.buffer<tensor<9xf32>>
  }
}

// -----

// subview C1.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{covers 4 elements from 6 on, expected them within 0 to 8}}
    %v = fsdp.subview %b at 6 : !fsdp.buffer<tensor<8xf32>> -> !fsdp.buffer<tensor<4xf32>>
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{has element type 'f64', expected 'f32'}}
    %v = fsdp.subview %b at 0 : !fsdp.buffer<tensor<8xf32>> -> !fsdp.buffer<tensor<4xf64>>
  }
}

// -----

// launch C1: contents have the types of the buffers.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{has 0 block arguments, expected 1 as it has ins}}
    %t = fsdp.launch "l" on "compute" ins(%b : !fsdp.buffer<tensor<8xf32>>) {
      fsdp.yield
    }
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{has 'tensor<4xf32>' as number 0 of its yielded values, expected 'tensor<8xf32>'}}
    %t = fsdp.launch "l" on "compute" outs(%b : !fsdp.buffer<tensor<8xf32>>) {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      fsdp.yield %c : tensor<4xf32>
    }
  }
}

// -----

// launch C2: a collective stands alone.

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{holds a collective and something else; launch them apart}}
    %t = fsdp.launch "l" on "reduce" ins(%b : !fsdp.buffer<tensor<8xf32>>) outs(%b : !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%x: tensor<8xf32>):
      %n = arith.negf %x : tensor<8xf32>
      %s = fsdp.all_reduce sum %n over ["fsdp"] : tensor<8xf32>
      fsdp.yield %s : tensor<8xf32>
    }
  }
}
