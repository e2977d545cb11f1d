// Elementwise chains become single kernels: what joins, what does not, and why.
// RUN: fsdp-opt %s --fsdp-fuse --split-input-file | FileCheck %s

// A broadcast, a constant and a chain are one kernel; a value that is used outside as well is a further
// result, and one that is only used inside is never stored.
// CHECK-LABEL: fsdp.segment @chain
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @chain train next [@chain] {
      %z = fsdp.input "z" sample_dim 0 : tensor<8x4xf32>
      %b = fsdp.input "b" sample_dim 0 : tensor<4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x4xf32>
      // CHECK:      %[[F:.*]]:2 = nn.fused
      // CHECK:        nn.repeat "d -> b d"
      // CHECK-NEXT:   %[[ADD:.*]] = arith.addf
      // CHECK-NEXT:   arith.constant dense<0.000000e+00>
      // CHECK-NEXT:   arith.maximumf
      // CHECK-NEXT:   %[[TANH:.*]] = math.tanh
      // CHECK-NEXT:   nn.yield %[[ADD]], %[[TANH]]
      // CHECK:      nn.einsum "bd,de->be" %[[F]]#1
      // CHECK-NEXT: nn.einsum "bd,de->be" %[[F]]#0
      %r = nn.repeat "d -> b d" %b : tensor<4xf32> -> tensor<8x4xf32>
      %a = arith.addf %z, %r : tensor<8x4xf32>
      %zero = arith.constant dense<0.0> : tensor<8x4xf32>
      %h = arith.maximumf %a, %zero : tensor<8x4xf32>
      %t = math.tanh %h : tensor<8x4xf32>
      %y = nn.einsum "bd,de->be" %t, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      %u = nn.einsum "bd,de->be" %a, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    }
  }
}

// -----

// A reduction ends a kernel. What it sums is stored only if something else needs it.
// CHECK-LABEL: fsdp.segment @reduction
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @reduction train next [@reduction] {
      %x = fsdp.input "x" sample_dim 0 shard_of 15 over ["fsdp"] : tensor<8x4xf32>
      // CHECK:      %[[SUM:.*]] = nn.fused %{{.*}} : (tensor<8x4xf32>) -> tensor<f64>
      // CHECK:        arith.mulf
      // CHECK-NEXT:   fsdp.mask_padding
      // CHECK-NEXT:   nn.reduce sum "b d ->"
      // CHECK-NEXT:   nn.yield
      // CHECK:      fsdp.all_reduce sum %[[SUM]]
      %s = arith.mulf %x, %x : tensor<8x4xf32>
      %m = fsdp.mask_padding %s dim 0 of 15 over ["fsdp"] fill 0.0 : tensor<8x4xf32>
      %sum = nn.reduce sum "b d ->" %m : tensor<8x4xf32> -> tensor<f64>
      %all = fsdp.all_reduce sum %sum over ["fsdp"] : tensor<f64>
      // The arithmetic behind a collective is a kernel of its own, of scalars.
      // CHECK:      nn.fused %{{.*}} : (tensor<f64>) -> tensor<f32>
      // CHECK:        math.sqrt
      // CHECK-NEXT:   arith.truncf
      %root = math.sqrt %all : tensor<f64>
      %norm = arith.truncf %root : tensor<f64> to tensor<f32>
      fsdp.output "norm" %norm
    }
  }
}

// -----

// Two reductions are two kernels, even of one value.
// CHECK-LABEL: fsdp.segment @two
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @two train next [@two] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      // CHECK:      %[[F:.*]]:2 = nn.fused
      // CHECK:        math.exp
      // CHECK-NEXT:   nn.reduce max
      // CHECK:      nn.reduce sum "b d -> b" %[[F]]#0
      %e = math.exp %x : tensor<8x4xf32>
      %s = nn.reduce sum "b d -> b" %e : tensor<8x4xf32> -> tensor<8xf32>
      %m = nn.reduce max "b d -> b" %e : tensor<8x4xf32> -> tensor<8xf32>
      %q = arith.divf %s, %m : tensor<8xf32>
      %t = nn.reduce sum "b ->" %q : tensor<8xf32> -> tensor<f64>
    }
  }
}

// -----

// Expensive arithmetic is not computed again in every iteration of an outer loop: the exponential of
// the features stays apart, that of the rows (computed once a row) and the cheap one do not.
// CHECK-LABEL: fsdp.segment @expensive
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @expensive train next [@expensive] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %d = fsdp.input "d" sample_dim 0 : tensor<4xf32>
      %b = fsdp.input "b" sample_dim 0 : tensor<8xf32>
      // CHECK:      %[[EXP:.*]] = math.exp %{{.*}} : tensor<4xf32>
      // CHECK:      nn.fused
      // CHECK-DAG:    math.exp %{{.*}} : tensor<8xf32>
      // CHECK-DAG:    arith.negf %{{.*}} : tensor<4xf32>
      // CHECK:        nn.yield
      %ed = math.exp %d : tensor<4xf32>
      %nd = arith.negf %ed : tensor<4xf32>
      %rd = nn.repeat "d -> b d" %nd : tensor<4xf32> -> tensor<8x4xf32>
      %eb = math.exp %b : tensor<8xf32>
      %rb = nn.repeat "b -> b d" %eb : tensor<8xf32> -> tensor<8x4xf32>
      %p = arith.mulf %x, %rd : tensor<8x4xf32>
      %q = arith.mulf %p, %rb : tensor<8x4xf32>
      %w = nn.einsum "bd,be->de" %q, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    }
  }
}

// -----

// Nothing moves past a collective, so nothing that was gathered lives longer than before.
// CHECK-LABEL: fsdp.segment @collective
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @collective train next [@collective] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
      // CHECK-NOT: nn.fused
      // CHECK: math.exp
      // CHECK: fsdp.all_gather
      // CHECK: arith.negf
      // CHECK-NOT: nn.fused
      %e = math.exp %x : tensor<8xf32>
      %g = fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<16xf32>
      %n = arith.negf %e : tensor<8xf32>
      %s = nn.einsum "a,b->ab" %n, %g : (tensor<8xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    }
  }
}

// -----

// A value whose other user stands before the kernel's inputs does not join: it would come too late.
// CHECK-LABEL: fsdp.segment @late
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @late train next [@late] {
      %x = fsdp.input "x" sample_dim 0 : tensor<4x4xf32>
      // CHECK-NOT: nn.fused
      // CHECK: %[[EXP:.*]] = math.exp
      // CHECK: %[[Y:.*]] = nn.einsum "ij,jk->ki" %[[EXP]], %[[EXP]]
      // CHECK: arith.mulf %[[EXP]], %[[Y]]
      // CHECK-NOT: nn.fused
      %e = math.exp %x : tensor<4x4xf32>
      %y = nn.einsum "ij,jk->ki" %e, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %p = arith.mulf %e, %y : tensor<4x4xf32>
      %z = nn.einsum "ij,jk->ik" %p, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    }
  }
}

// -----

// A broadcast that an einsum needs as well is repeated, not stored by the kernel.
// CHECK-LABEL: fsdp.segment @broadcast
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @broadcast train next [@broadcast] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      %d = fsdp.input "d" sample_dim 0 : tensor<4xf32>
      // CHECK:      %[[R:.*]] = nn.repeat
      // CHECK:      nn.einsum "bd,be->de" %[[R]]
      // CHECK:      nn.fused %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<4xf32>
      // CHECK:        nn.repeat
      // CHECK-NEXT:   arith.addf
      // CHECK-NEXT:   nn.reduce
      %r = nn.repeat "d -> b d" %d : tensor<4xf32> -> tensor<8x4xf32>
      %w = nn.einsum "bd,be->de" %r, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
      %a = arith.addf %x, %r : tensor<8x4xf32>
      %s = nn.reduce sum "b d -> d" %a : tensor<8x4xf32> -> tensor<4xf32>
      %v = nn.einsum "de,e->d" %w, %s : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
    }
  }
}

// -----

// What is printed of a value leaves the kernels as they are: the chain does not store what only the print takes beside it, be the print before the
// end of the chain; the print has the value computed for itself.
// CHECK-LABEL: fsdp.segment @report
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @report train next [@report] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x4xbf16>
      // CHECK:      nn.fused %{{.*}} : (tensor<8x4xbf16>) -> tensor<f64>
      // CHECK:        arith.addf
      // CHECK-NEXT:   arith.extf
      // CHECK-NEXT:   nn.reduce max
      // CHECK:      nn.fused %{{.*}} : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
      // CHECK:        arith.addf
      // CHECK-NEXT:   arith.mulf
      // CHECK-NEXT:   nn.yield %{{[^,]*}} : tensor<8x4xbf16>
      // CHECK:      nn.einsum
      %a = arith.addf %x, %x : tensor<8x4xbf16>
      %wide = arith.extf %a {fsdp.report} : tensor<8x4xbf16> to tensor<8x4xf32>
      %max = nn.reduce max "a b ->" %wide {fsdp.report} : tensor<8x4xf32> -> tensor<f64>
      %narrow = arith.truncf %max {fsdp.report} : tensor<f64> to tensor<f32>
      fsdp.output "a.max" %narrow {fsdp.report}
      %z = fsdp.input "z" sample_dim 0 : tensor<8x4xbf16>
      %b = arith.mulf %a, %z : tensor<8x4xbf16>
      %y = nn.einsum "bd,de->be" %b, %w : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
    }
  }
}
