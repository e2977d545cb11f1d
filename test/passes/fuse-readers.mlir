// A kernel that reads the product of another one, and is the only one that does, is one kernel with that.
// RUN: fsdp-opt %s --fsdp-fuse --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-fuse --fsdp-schedule --fsdp-plan-memory --fsdp-verify-schedule --split-input-file -o %t

// The two gradients of a gated activation. The reader's result takes the place of the product.
// CHECK-LABEL: fsdp.segment @gated
// CHECK:      %[[K:.*]]:2 = nn.fused {{.*}} -> (tensor<16x16xbf16>, tensor<16x16xbf16>) {
// CHECK:        %[[P:.*]] = nn.einsum
// CHECK-DAG:    %[[N:.*]] = arith.negf
// CHECK-DAG:    %[[M:.*]] = math.absf
// CHECK:        nn.yield %[[M]], %[[N]]
// CHECK-NOT:  nn.fused
// CHECK:      fsdp.flatten %[[K]]#1, %[[K]]#0
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @gated train next [@gated] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %c = arith.mulf %p, %g : tensor<16x16xbf16>
      %d = math.absf %c : tensor<16x16xbf16>
      %a = arith.mulf %p, %u : tensor<16x16xbf16>
      %b = arith.negf %a : tensor<16x16xbf16>
      %f = fsdp.flatten %b, %d : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<512xbf16>
      %n = fsdp.square_sum %f : tensor<512xbf16>
    }
  }
}

// -----

// The first result has the type of the product, in whose place it is, though the reader has another one first.
// CHECK-LABEL: fsdp.segment @types
// CHECK:      nn.fused {{.*}} -> (tensor<16x16xbf16>, tensor<16x16xf32>, tensor<16x16xbf16>) {
// CHECK-NOT:  nn.fused
// CHECK:      fsdp.flatten
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @types train next [@types] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %c = arith.mulf %p, %g : tensor<16x16xbf16>
      %wide = arith.extf %c : tensor<16x16xbf16> to tensor<16x16xf32>
      %d32 = math.absf %wide : tensor<16x16xf32>
      %d = arith.truncf %d32 : tensor<16x16xf32> to tensor<16x16xbf16>
      %a = arith.mulf %p, %u : tensor<16x16xbf16>
      %b = arith.negf %a : tensor<16x16xbf16>
      %s = nn.softmax %wide : tensor<16x16xf32>
      %e = fsdp.square_sum %s : tensor<16x16xf32>
      %f = fsdp.flatten %b, %d : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<512xbf16>
      %n = fsdp.square_sum %f : tensor<512xbf16>
    }
  }
}

// -----

// Something else reads the product too.
// CHECK-LABEL: fsdp.segment @other
// CHECK-COUNT-2: nn.fused
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @other train next [@other] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %c = arith.mulf %p, %g : tensor<16x16xbf16>
      %d = math.absf %c : tensor<16x16xbf16>
      %a = arith.mulf %p, %u : tensor<16x16xbf16>
      %b = arith.negf %a : tensor<16x16xbf16>
      %f = fsdp.flatten %b, %d, %p : (tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<768xbf16>
      %n = fsdp.square_sum %f : tensor<768xbf16>
    }
  }
}

// -----

// Another operand of the reader is computed from the first kernel, or behind a collective; the reader belongs to another part of the step.
// CHECK-LABEL: fsdp.segment @later
// CHECK-COUNT-2: nn.fused
// CHECK-LABEL: fsdp.segment @collective
// CHECK-COUNT-2: nn.fused
// CHECK-LABEL: fsdp.segment @part
// CHECK-COUNT-2: nn.fused
module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["fsdp"=2]>
  fsdp.program @all role {} {
    fsdp.segment @later train next [@collective] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %a = arith.mulf %p, %u : tensor<16x16xbf16>
      %b = arith.negf %a : tensor<16x16xbf16>
      %s = nn.softmax %b : tensor<16x16xbf16>
      %c = arith.mulf %p, %s : tensor<16x16xbf16>
      %d = math.absf %c : tensor<16x16xbf16>
      %n = fsdp.square_sum %d : tensor<16x16xbf16>
    }
    fsdp.segment @collective train next [@part] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %a = arith.mulf %p, %u : tensor<16x16xbf16>
      %b = arith.negf %a : tensor<16x16xbf16>
      %r = fsdp.all_reduce sum %b over ["fsdp"] : tensor<16x16xbf16>
      %c = arith.mulf %p, %g : tensor<16x16xbf16>
      %d = math.absf %c : tensor<16x16xbf16>
      %f = fsdp.flatten %r, %d : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<512xbf16>
      %n = fsdp.square_sum %f : tensor<512xbf16>
    }
    fsdp.segment @part train next [@later] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %c = arith.mulf %p, %g : tensor<16x16xbf16>
      %d = math.absf %c : tensor<16x16xbf16>
      %a = arith.mulf %p, %u {fsdp.structure = #fsdp.structure<"u" backward>} : tensor<16x16xbf16>
      %b = arith.negf %a {fsdp.structure = #fsdp.structure<"u" backward>} : tensor<16x16xbf16>
      %f = fsdp.flatten %b, %d : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<512xbf16>
      %n = fsdp.square_sum %f : tensor<512xbf16>
    }
  }
}

// -----

// The first kernel is a GELU, which a library computes with the product; the reader has a broadcast.
// CHECK-LABEL: fsdp.segment @library
// CHECK-COUNT-2: nn.fused
// CHECK-LABEL: fsdp.segment @broadcast
// CHECK-COUNT-2: nn.fused
module attributes {fsdp.phase = "local"} {
  fsdp.program @all role {} {
    fsdp.segment @library train next [@broadcast] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xf32>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xf32>
      %half = arith.constant dense<5.000000e-01> : tensor<16x16xf32>
      %one = arith.constant dense<1.000000e+00> : tensor<16x16xf32>
      %cubic = arith.constant dense<4.471500e-02> : tensor<16x16xf32>
      %root = arith.constant dense<0.797884583> : tensor<16x16xf32>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x16xf32>
      %c = arith.mulf %p, %g : tensor<16x16xf32>
      %d = math.absf %c : tensor<16x16xf32>
      %p2 = arith.mulf %p, %p : tensor<16x16xf32>
      %p3 = arith.mulf %p2, %p : tensor<16x16xf32>
      %t0 = arith.mulf %p3, %cubic : tensor<16x16xf32>
      %t1 = arith.addf %p, %t0 : tensor<16x16xf32>
      %t2 = arith.mulf %t1, %root : tensor<16x16xf32>
      %t3 = math.tanh %t2 : tensor<16x16xf32>
      %t4 = arith.addf %t3, %one : tensor<16x16xf32>
      %t5 = arith.mulf %p, %half : tensor<16x16xf32>
      %h = arith.mulf %t5, %t4 : tensor<16x16xf32>
      %f = fsdp.flatten %h, %d : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<512xf32>
      %n = fsdp.square_sum %f : tensor<512xf32>
    }
    fsdp.segment @broadcast train next [@library] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xbf16>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xbf16>
      %g = fsdp.input "g" sample_dim 0 : tensor<16xbf16>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xbf16>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<16x16xbf16>
      %r = nn.repeat "c -> r c" %g : tensor<16xbf16> -> tensor<16x16xbf16>
      %c = arith.mulf %p, %r : tensor<16x16xbf16>
      %d = math.absf %c : tensor<16x16xbf16>
      %a = arith.mulf %p, %u : tensor<16x16xbf16>
      %b = arith.negf %a : tensor<16x16xbf16>
      %f = fsdp.flatten %b, %d : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<512xbf16>
      %n = fsdp.square_sum %f : tensor<512xbf16>
    }
  }
}

// -----

// A part of a carried tensor is read by a kernel without the product: the product is computed in the place of a result, which may replace
// the tensor.
// CHECK-LABEL: fsdp.carried @sum
// CHECK: %[[OLD:.*]] = fsdp.view
// CHECK-NEXT: %[[KERNEL:.*]]:2 = nn.fused
// CHECK: nn.einsum
// CHECK: nn.fused %[[KERNEL]]#0, %{{.*}}, %[[OLD]]
module attributes {fsdp.phase = "local"} {
  fsdp.carried @sum : tensor<256xf32> zeroed
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      %x = fsdp.input "x" sample_dim 0 : tensor<16x4xf32>
      %w = fsdp.input "w" sample_dim 0 : tensor<16x4xf32>
      %g = fsdp.input "g" sample_dim 0 : tensor<16x16xf32>
      %u = fsdp.input "u" sample_dim 0 : tensor<16x16xf32>
      %flat = fsdp.carry_load @sum : tensor<256xf32>
      %old = fsdp.view %flat at 0 : tensor<256xf32> -> tensor<16x16xf32>
      %p = nn.einsum "rk,ck->rc" %x, %w : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x16xf32>
      %pu = arith.mulf %p, %u : tensor<16x16xf32>
      %new = arith.addf %pu, %old : tensor<16x16xf32>
      %pg = arith.mulf %p, %g : tensor<16x16xf32>
      %b = arith.negf %pg : tensor<16x16xf32>
      %stored = fsdp.flatten %new : (tensor<16x16xf32>) -> tensor<256xf32>
      fsdp.carry_store %stored, @sum : tensor<256xf32>
      %n = fsdp.square_sum %b : tensor<16x16xf32>
      %o = arith.truncf %n : tensor<f64> to tensor<f32>
      fsdp.output "o" %o
    }
  }
}
