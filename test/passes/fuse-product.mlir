// A kernel begins with the matrix product that feeds it, where it takes the product row by row.
// RUN: fsdp-opt %s --fsdp-fuse --split-input-file | FileCheck %s

// A bias and a function: the product itself is stored nowhere, it is computed in the place of the
// first result.
// CHECK-LABEL: fsdp.segment @bias
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @bias train next [@bias] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      %b = fsdp.input "b" sample_dim 0 : tensor<6xf32>
      // CHECK:      %[[F:.*]]:2 = nn.fused %{{.*}} : (tensor<2x8x4xf32>, tensor<4x6xf32>, tensor<6xf32>) -> (tensor<2x8x6xf32>, tensor<2x8x6xf32>)
      // CHECK:        %[[Z:.*]] = nn.einsum "bsd,df->bsf"
      // CHECK-NEXT:   %[[R:.*]] = nn.repeat
      // CHECK-NEXT:   %[[A:.*]] = arith.addf %[[Z]], %[[R]]
      // CHECK-NEXT:   %[[T:.*]] = math.tanh %[[A]]
      // CHECK-NEXT:   nn.yield %[[A]], %[[T]]
      // CHECK:      nn.softmax %[[F]]#0
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %r = nn.repeat "f -> b s f" %b : tensor<6xf32> -> tensor<2x8x6xf32>
      %a = arith.addf %z, %r : tensor<2x8x6xf32>
      %t = math.tanh %a : tensor<2x8x6xf32>
      %s = nn.softmax %a : tensor<2x8x6xf32>
    }
  }
}

// -----

// One op is enough.
// CHECK-LABEL: fsdp.segment @residual
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @residual train next [@residual] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      %h = fsdp.input "h" sample_dim 0 : tensor<2x8x6xf32>
      // CHECK:      nn.fused
      // CHECK:        %[[Z:.*]] = nn.einsum
      // CHECK-NEXT:   arith.addf %[[Z]], %{{.*}}
      // CHECK-NEXT:   nn.yield
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %a = arith.addf %z, %h : tensor<2x8x6xf32>
    }
  }
}

// -----

// A product that is needed elsewhere too is a result, and comes first.
// CHECK-LABEL: fsdp.segment @own
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @own train next [@own] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      // CHECK:      %[[F:.*]]:2 = nn.fused
      // CHECK:        %[[Z:.*]] = nn.einsum
      // CHECK-NEXT:   %[[N:.*]] = arith.negf %[[Z]]
      // CHECK-NEXT:   nn.yield %[[Z]], %[[N]]
      // CHECK:      nn.softmax %[[F]]#0
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %n = arith.negf %z : tensor<2x8x6xf32>
      %s = nn.softmax %z : tensor<2x8x6xf32>
    }
  }
}

// -----

// Of two products the last one joins; the other is read.
// CHECK-LABEL: fsdp.segment @two
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @two train next [@two] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      // CHECK:      %[[GATE:.*]] = nn.einsum
      // CHECK:      nn.fused %{{.*}}, %{{.*}}, %[[GATE]] :
      // CHECK:        nn.einsum
      // CHECK:        arith.mulf
      // CHECK-NEXT:   nn.yield
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %up = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %t = math.tanh %z : tensor<2x8x6xf32>
      %m = arith.mulf %t, %up : tensor<2x8x6xf32>
    }
  }
}

// -----

// A gradient and the sum over its rows; the transposed right side and the result that comes first are
// those of a product's gradient.
// CHECK-LABEL: fsdp.segment @sum
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @sum train next [@sum] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      %g = fsdp.input "g" sample_dim 0 : tensor<2x8x6xf32>
      // CHECK:      %[[F:.*]]:2 = nn.fused %{{.*}} -> (tensor<2x8x4xf32>, tensor<4xf32>)
      // CHECK:        nn.einsum "bsf,df->bsd"
      // CHECK-NEXT:   arith.mulf
      // CHECK-NEXT:   nn.reduce sum "b s d -> d"
      // CHECK:      nn.einsum "bsd,bsf->df" %[[F]]#0
      %z = nn.einsum "bsf,df->bsd" %g, %w : (tensor<2x8x6xf32>, tensor<4x6xf32>) -> tensor<2x8x4xf32>
      %m = arith.mulf %z, %x : tensor<2x8x4xf32>
      %s = nn.reduce sum "b s d -> d" %m : tensor<2x8x4xf32> -> tensor<4xf32>
      %dw = nn.einsum "bsd,bsf->df" %m, %g : (tensor<2x8x4xf32>, tensor<2x8x6xf32>) -> tensor<4x6xf32>
    }
  }
}

// -----

// Sums of 16 bits are made one after the other, each over all rows: such a kernel does not go by rows.
// CHECK-LABEL: fsdp.segment @narrow_sum
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @narrow_sum train next [@narrow_sum] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xbf16>
      // CHECK:      %[[Z:.*]] = nn.einsum
      // CHECK:      nn.fused %[[Z]]
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xbf16>, tensor<4x6xbf16>) -> tensor<2x8x6xbf16>
      %n = arith.negf %z : tensor<2x8x6xbf16>
      %s = nn.reduce sum "b s f -> f" %n : tensor<2x8x6xbf16> -> tensor<6xbf16>
    }
  }
}

// -----

// No result has the product's type: there is no place to compute it in.
// CHECK-LABEL: fsdp.segment @no_place
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @no_place train next [@no_place] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xbf16>
      // CHECK:      %[[Z:.*]] = nn.einsum
      // CHECK:      nn.fused %[[Z]]
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xbf16>, tensor<4x6xbf16>) -> tensor<2x8x6xbf16>
      %n = arith.negf %z : tensor<2x8x6xbf16>
      %wide = arith.extf %n : tensor<2x8x6xbf16> to tensor<2x8x6xf32>
    }
  }
}

// -----

// A batch of products is not complete row by row.
// CHECK-LABEL: fsdp.segment @batch
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @batch train next [@batch] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      // CHECK:      %[[Z:.*]] = nn.einsum
      // CHECK:      arith.negf %[[Z]]
      %z = nn.einsum "bsd,btd->bst" %x, %x : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
      %n = arith.negf %z : tensor<2x8x8xf32>
    }
  }
}

// -----

// Nor is one whose columns are the outer dimension, nor one that interleaves them with rows.
// CHECK-LABEL: fsdp.segment @columns_first
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @columns_first train next [@columns_first] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      // CHECK:      %[[Z:.*]] = nn.einsum "bsd,df->fbs"
      // CHECK:      arith.negf %[[Z]]
      // CHECK:      %[[Y:.*]] = nn.einsum "bsd,df->bfs"
      // CHECK:      arith.negf %[[Y]]
      %z = nn.einsum "bsd,df->fbs" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<6x2x8xf32>
      %n = arith.negf %z : tensor<6x2x8xf32>
      %y = nn.einsum "bsd,df->bfs" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x6x8xf32>
      %m = arith.negf %y : tensor<2x6x8xf32>
    }
  }
}

// -----

// A kernel that transposes walks over what it writes.
// CHECK-LABEL: fsdp.segment @transposed
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @transposed train next [@transposed] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      // CHECK:      %[[Z:.*]] = nn.einsum
      // CHECK:      nn.fused %[[Z]]
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %n = arith.negf %z : tensor<2x8x6xf32>
      %t = nn.rearrange "b s f -> b f s" %n : tensor<2x8x6xf32> -> tensor<2x6x8xf32>
    }
  }
}

// -----

// What the product takes is complete before the kernel, which does not compute it.
// CHECK-LABEL: fsdp.segment @own_side
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @own_side train next [@own_side] {
      %x = fsdp.input "x" sample_dim 0 : tensor<4x4xf32>
      // CHECK:      %[[E:.*]] = math.exp
      // CHECK:      nn.fused %[[E]], %{{.*}} :
      // CHECK:        nn.einsum
      // CHECK-NEXT:   arith.addf
      // CHECK-NEXT:   nn.yield
      %e = math.exp %x : tensor<4x4xf32>
      %z = nn.einsum "ij,jk->ik" %e, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %a = arith.addf %z, %e : tensor<4x4xf32>
    }
  }
}

// -----

// A product stays on its side of a collective.
// CHECK-LABEL: fsdp.segment @collective
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @collective train next [@collective] {
      %x = fsdp.input "x" sample_dim 0 : tensor<2x8x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x6xf32>
      // CHECK:      %[[Z:.*]] = nn.einsum
      // CHECK:      fsdp.all_gather
      // CHECK:      arith.negf %[[Z]]
      %z = nn.einsum "bsd,df->bsf" %x, %w : (tensor<2x8x4xf32>, tensor<4x6xf32>) -> tensor<2x8x6xf32>
      %g = fsdp.all_gather %w dim 0 over ["fsdp"] : tensor<4x6xf32> -> tensor<8x6xf32>
      %n = arith.negf %z : tensor<2x8x6xf32>
    }
  }
}

// -----

// A side that the chain takes as well is a broadcast, which is computed inside and has no place in memory: two kernels.
// CHECK-LABEL: fsdp.segment @broadcast_side
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @broadcast_side train next [@broadcast_side] {
      %x = fsdp.input "x" sample_dim 0 : tensor<8xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<4x4xf32>
      // CHECK:      %[[R:.*]] = nn.repeat "b -> b d"
      // CHECK:      %[[Z:.*]] = nn.einsum "bd,df->bf" %[[R]], %{{.*}}
      // CHECK:      nn.fused %{{.*}}%[[Z]]
      // CHECK-NOT:    nn.einsum
      %r = nn.repeat "b -> b d" %x : tensor<8xf32> -> tensor<8x4xf32>
      %z = nn.einsum "bd,df->bf" %r, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      %a = arith.addf %z, %r : tensor<8x4xf32>
      %t = math.tanh %a : tensor<8x4xf32>
    }
  }
}
