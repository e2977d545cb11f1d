// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// buffer C1: offsets.

fsdp.program @p role {} {
  // expected-error @below {{has offset 32, expected a multiple of 64 from 0 to 2^48}}
  %b = fsdp.buffer "b" persistent offset 32 : !fsdp.buffer<tensor<8xf32>>
}

// -----

// buffer C2: persistent buffers stand in programs.

fsdp.program @p role {} {
  // expected-error @below {{'b' is directly in a program; mark it persistent or move it into a segment}}
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

// buffer C4: a zeroed buffer is persistent, and the driver does not fill it.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{'b' is zeroed, but it is not persistent; let a launch write it}}
    %b = fsdp.buffer "b" zeroed : !fsdp.buffer<tensor<8xf32>>
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{'b' is zeroed, but the driver fills it}}
  %b = fsdp.buffer "b" persistent zeroed holds @u "parameter" : !fsdp.buffer<tensor<8xf32>>
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{'b' is zeroed, but the driver fills it}}
  %b = fsdp.buffer "b" persistent zeroed : !fsdp.buffer<tensor<16xi64>>
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{'b' holds "gradient", expected "parameter", a state or "accumulator" as it is persistent}}
  %b = fsdp.buffer "b" persistent holds @u "gradient" : !fsdp.buffer<tensor<8xf32>>
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{names 'u', which is not a storage}}
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
    // expected-error @below {{covers 4 elements from 6, expected a range within 0 to 8}}
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
    // expected-error @below {{has 0 block arguments, expected 1, one for each of its 'ins'}}
    %t = fsdp.launch "l" on "compute" ins(%b : !fsdp.buffer<tensor<8xf32>>) {
      fsdp.yield
    }
  }
}

// -----

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{has 'tensor<4xf32>' as yielded value #0, expected 'tensor<8xf32>'}}
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
    // expected-error @below {{contains a collective and other ops; use separate launches}}
    %t = fsdp.launch "l" on "reduce" ins(%b : !fsdp.buffer<tensor<8xf32>>) outs(%b : !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%x: tensor<8xf32>):
      %n = arith.negf %x : tensor<8xf32>
      %s = fsdp.all_reduce sum %n over ["fsdp"] : tensor<8xf32>
      fsdp.yield %s : tensor<8xf32>
    }
  }
}

// -----

// launch C2: a group has one kind of collective, over the same axes, in one order.

fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<4xf32>>
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<4xf32>>
    %c = fsdp.buffer "c" : !fsdp.buffer<tensor<8xf32>>
    %d = fsdp.buffer "d" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{groups 'fsdp.all_gather' and 'fsdp.all_reduce', expected only 'fsdp.all_gather' or only 'fsdp.reduce_scatter'; use separate launches}}
    %t = fsdp.launch "l" on "gather" ins(%a, %b : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%c, %b : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      %u = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %v = fsdp.all_reduce sum %y over ["fsdp"] : tensor<4xf32>
      fsdp.yield %u, %v : tensor<8xf32>, tensor<4xf32>
    }
  }
}

// -----

fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<4xf32>>
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<4xf32>>
    %c = fsdp.buffer "c" : !fsdp.buffer<tensor<8xf32>>
    %d = fsdp.buffer "d" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{groups a collective over ["data"] with one over ["fsdp"], expected the same axes; use separate launches}}
    %t = fsdp.launch "l" on "gather" ins(%a, %b : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%c, %d : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      %u = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %v = fsdp.all_gather %y dim 0 over ["data"] : tensor<4xf32> -> tensor<8xf32>
      fsdp.yield %u, %v : tensor<8xf32>, tensor<8xf32>
    }
  }
}

// -----

fsdp.mesh @mesh <["data"=2, "fsdp"=2]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<4xf32>>
    %b = fsdp.buffer "b" : !fsdp.buffer<tensor<4xf32>>
    %c = fsdp.buffer "c" : !fsdp.buffer<tensor<8xf32>>
    %d = fsdp.buffer "d" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{groups collectives of which #0 does not take block argument #0 and give yielded value #0; bring them into one order}}
    %t = fsdp.launch "l" on "gather" ins(%a, %b : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%c, %d : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      %u = fsdp.all_gather %y dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %v = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      fsdp.yield %u, %v : tensor<8xf32>, tensor<8xf32>
    }
  }
}

// -----

fsdp.mesh @mesh <["fsdp"=2]>
fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    %a = fsdp.buffer "a" : !fsdp.buffer<tensor<4xf32>>
    %c = fsdp.buffer "c" : !fsdp.buffer<tensor<8xf32>>
    // expected-error @below {{groups 9 collectives, expected at most 8; use separate launches}}
    %t = fsdp.launch "l" on "gather" ins(%a, %a, %a, %a, %a, %a, %a, %a, %a : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%c, %c, %c, %c, %c, %c, %c, %c, %c : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%x0: tensor<4xf32>, %x1: tensor<4xf32>, %x2: tensor<4xf32>, %x3: tensor<4xf32>, %x4: tensor<4xf32>, %x5: tensor<4xf32>, %x6: tensor<4xf32>, %x7: tensor<4xf32>, %x8: tensor<4xf32>):
      %u0 = fsdp.all_gather %x0 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u1 = fsdp.all_gather %x1 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u2 = fsdp.all_gather %x2 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u3 = fsdp.all_gather %x3 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u4 = fsdp.all_gather %x4 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u5 = fsdp.all_gather %x5 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u6 = fsdp.all_gather %x6 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u7 = fsdp.all_gather %x7 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      %u8 = fsdp.all_gather %x8 dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<8xf32>
      fsdp.yield %u0, %u1, %u2, %u3, %u4, %u5, %u6, %u7, %u8 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
    }
  }
}

// -----

// launch C3: what launches record.

fsdp.program @p role {} {
  %b = fsdp.buffer "b" persistent offset 0 : !fsdp.buffer<tensor<8xf32>>
  fsdp.segment @s train next [@s] {
    %t = fsdp.launch "a" on "compute" outs(%b : !fsdp.buffer<tensor<8xf32>>) {
      %x = arith.constant dense<1.0> : tensor<8xf32>
      fsdp.yield %x : tensor<8xf32>
    }
    // expected-error @below {{'records' operand must be an 'fsdp.event'}}
    fsdp.launch "c" on "compute" records(%t) outs(%b : !fsdp.buffer<tensor<8xf32>>) {
      %x = arith.constant dense<1.0> : tensor<8xf32>
      fsdp.yield %x : tensor<8xf32>
    }
  }
}

// -----

fsdp.program @p role {} {
  %b = fsdp.buffer "b" persistent offset 0 : !fsdp.buffer<tensor<8xf32>>
  %e = fsdp.event "e"
  fsdp.segment @s train next [@s] {
    // expected-error @below {{records event 'e' twice}}
    fsdp.launch "c" on "compute" records(%e, %e) outs(%b : !fsdp.buffer<tensor<8xf32>>) {
      %x = arith.constant dense<1.0> : tensor<8xf32>
      fsdp.yield %x : tensor<8xf32>
    }
  }
}

// -----

// event C1 and C2.

fsdp.program @p role {} {
  fsdp.segment @s train next [@s] {
    // expected-error @below {{'fsdp.event' op expects parent op 'fsdp.program'}}
    %e = fsdp.event "e"
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{name 'name' is empty; give it a name}}
  %e = fsdp.event ""
  fsdp.segment @s train next [@s] {
  }
}

// -----

// walk C1: segments and times.

fsdp.program @p role {} {
  // expected-error @below {{has no segment to run}}
  fsdp.walk @w train [] times []
  fsdp.segment @s train next [@s] {
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{has 2 repetition counts, expected 1, one for each segment}}
  fsdp.walk @w train [@s] times [1, 2]
  fsdp.segment @s train next [@s] {
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{runs segment 't', which program 'p' lacks}}
  fsdp.walk @w train [@t] times [1]
  fsdp.segment @s train next [@s] {
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{runs segment 's' 0 times, expected 1 to 1048576}}
  fsdp.walk @w train [@s] times [0]
  fsdp.segment @s train next [@s] {
  }
}

// -----

// walk C2: every step of a walk is an edge.

fsdp.program @p role {} {
  // expected-error @below {{runs segment 's' after 's', whose 'next' does not name it}}
  fsdp.walk @w train [@s, @t] times [2, 1]
  fsdp.segment @s train next [@t] {
  }
  fsdp.segment @t train next [@s] {
  }
}

// -----

fsdp.program @p role {} {
  // expected-error @below {{runs segment 's' after 't', whose 'next' does not name it}}
  fsdp.walk @w train [@s, @t] times [1, 1]
  fsdp.segment @s train next [@t] {
  }
  fsdp.segment @t train next [@t] {
  }
}

// -----

// walk C3: kinds.

fsdp.program @p role {} {
  // expected-error @below {{runs segment 's' of kind 'evaluate', expected kind 'train' as in the walk}}
  fsdp.walk @w train [@s] times [1]
  fsdp.segment @s evaluate next [@s] {
  }
}
