// RUN: fsdp-opt %s --fsdp-join-kernels | FileCheck %s
// RUN: fsdp-opt %s --fsdp-join-kernels --fsdp-join-kernels > %t.twice.mlir
// RUN: fsdp-opt %s --fsdp-join-kernels | diff - %t.twice.mlir
// RUN: fsdp-opt %s --fsdp-join-kernels --fsdp-fuse --fsdp-schedule --fsdp-plan-memory | FileCheck %s --check-prefix=PLACES

module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=2, "tensor"=2]>
fsdp.program @all role {} {
  // The loss has the gradient of the logits too; what scales it is moved before the loss.
  // CHECK-LABEL: fsdp.segment @whole
  // CHECK: %[[D:.*]] = nn.repeat "-> b" %{{.*}} {fsdp.structure = #fsdp.structure<"head">}
  // CHECK-NEXT: %[[LOSS:.*]], %{{.*}}, %[[G:.*]] = nn.cross_entropy %{{.*}}, %{{.*}} upstream %[[D]] {fsdp.structure = #fsdp.structure<"head">}
  // CHECK: nn.reduce sum "b ->" %[[LOSS]]
  // CHECK-NOT: nn.cross_entropy_grad
  // CHECK: nn.reduce sum "b v ->" %[[G]]
  // In one launch, in the place of the logits.
  // PLACES-LABEL: fsdp.segment @whole
  // PLACES: fsdp.buffer "exp" offset [[AT:[0-9]+]]
  // PLACES: fsdp.buffer "cross_entropy.grad" offset [[AT]]
  // PLACES: fsdp.launch "cross_entropy"
  // PLACES-NOT: cross_entropy_grad
  // PLACES-LABEL: fsdp.segment @part
  fsdp.segment @whole evaluate next [@whole, @part, @apart, @depends, @waits] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    %y = math.exp %x : tensor<4x8xf32>
    %guess = nn.argmax %y : tensor<4x8xf32> -> tensor<4xi32>
    %loss, %lse = nn.cross_entropy %y, %label {fsdp.structure = #fsdp.structure<"head">} : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %sum = nn.reduce sum "b ->" %loss : tensor<4xf32> -> tensor<f32>
    fsdp.output "loss" %sum
    %guesses = arith.sitofp %guess : tensor<4xi32> to tensor<4xf32>
    %total = nn.reduce sum "b ->" %guesses : tensor<4xf32> -> tensor<f32>
    fsdp.output "guesses" %total
    %quarter = arith.constant dense<0.25> : tensor<f32>
    %d = nn.repeat "-> b" %quarter {fsdp.structure = #fsdp.structure<"head" backward>} : tensor<f32> -> tensor<4xf32>
    %g = nn.cross_entropy_grad %y, %label, %lse, %d {fsdp.structure = #fsdp.structure<"head" backward>} : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %all = nn.reduce sum "b v ->" %g : tensor<4x8xf32> -> tensor<f32>
    fsdp.output "g" %all
  }
  // A part that is all classes: what fsdp-partition writes where no other rank has a part. What only the gradient needs of it goes.
  // CHECK-LABEL: fsdp.segment @part
  // CHECK: %{{.*}}, %{{.*}}, %[[P:.*]], %[[G:.*]] = nn.partial_cross_entropy %{{.*}}, %{{.*}} of %{{.*}} upstream %{{.*}} : tensor<4x8xbf16>, tensor<4xi32> upstream tensor<4xf32>
  // CHECK-NOT: {{math.log|nn.cross_entropy_grad}}
  // CHECK: nn.reduce sum "b ->" %[[P]] 
  // CHECK: nn.reduce sum "b v ->" %[[G]] 
  fsdp.segment @part evaluate next [@whole, @part, @apart, @depends, @waits] {
    %in = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    %x = arith.truncf %in : tensor<4x8xf32> to tensor<4x8xbf16>
    %d = arith.sitofp %label : tensor<4xi32> to tensor<4xf32>
    %count = fsdp.shard_size of 7 over [] part 8
    %p:3 = nn.partial_cross_entropy %x, %label of %count : tensor<4x8xbf16>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    %shift = arith.subf %p#0, %p#0 : tensor<4xf32>
    %scale = math.exp %shift : tensor<4xf32>
    %scaled = arith.mulf %p#1, %scale : tensor<4xf32>
    %log = math.log %scaled : tensor<4xf32>
    %lse = arith.addf %log, %p#0 : tensor<4xf32>
    %g = nn.cross_entropy_grad %x, %label, %lse, %d of %count : tensor<4x8xbf16>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %sum = nn.reduce sum "b ->" %p#2 : tensor<4xf32> -> tensor<f32>
    fsdp.output "picked" %sum
    %all = nn.reduce sum "b v ->" %g : tensor<4x8xbf16> -> tensor<f32>
    fsdp.output "g" %all
  }
  // Not joined: other labels, another logarithm, logits that are read after the loss.
  // CHECK-LABEL: fsdp.segment @apart
  // CHECK-NOT: upstream
  // CHECK-COUNT-3: nn.cross_entropy_grad
  // CHECK-NOT: upstream
  // CHECK: fsdp.output
  fsdp.segment @apart evaluate next [@whole, @part, @apart, @depends, @waits] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    %other = fsdp.input "other" sample_dim 0 : tensor<4xi32>
    %a = math.exp %x : tensor<4x8xf32>
    %b = math.tanh %x : tensor<4x8xf32>
    %c = math.sqrt %x : tensor<4x8xf32>
    %d = arith.constant dense<0.5> : tensor<4xf32>
    %p:2 = nn.cross_entropy %a, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %q:2 = nn.cross_entropy %b, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %r:2 = nn.cross_entropy %c, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %guess = nn.argmax %c : tensor<4x8xf32> -> tensor<4xi32>
    %s = nn.cross_entropy_grad %a, %other, %p#1, %d : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %t = nn.cross_entropy_grad %b, %label, %p#1, %d : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %u = nn.cross_entropy_grad %c, %label, %r#1, %d : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %v = arith.addf %s, %t : tensor<4x8xf32>
    %w = arith.addf %v, %u : tensor<4x8xf32>
    %guesses = arith.sitofp %guess : tensor<4xi32> to tensor<4xf32>
    %m = arith.addf %p#0, %q#0 : tensor<4xf32>
    %n = arith.addf %m, %r#0 : tensor<4xf32>
    %o = arith.addf %n, %guesses : tensor<4xf32>
    %e = nn.reduce sum "b v ->" %w : tensor<4x8xf32> -> tensor<f32>
    %f = nn.reduce sum "b ->" %o : tensor<4xf32> -> tensor<f32>
    %z = arith.addf %e, %f : tensor<f32>
    fsdp.output "y" %z
  }
  // Not joined: the cotangent of the loss depends on the loss, or takes a whole tensor of logits to compute.
  // CHECK-LABEL: fsdp.segment @depends
  // CHECK-NOT: upstream
  // CHECK-COUNT-2: nn.cross_entropy_grad
  // CHECK-NOT: upstream
  // CHECK: fsdp.output
  fsdp.segment @depends evaluate next [@whole, @part, @apart, @depends, @waits] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    %a = math.exp %x : tensor<4x8xf32>
    %b = math.tanh %x : tensor<4x8xf32>
    %p:2 = nn.cross_entropy %a, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %q:2 = nn.cross_entropy %b, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %focal = math.exp %p#0 : tensor<4xf32>
    %large = math.sqrt %x : tensor<4x8xf32>
    %rows = nn.reduce sum "b v -> b" %large : tensor<4x8xf32> -> tensor<4xf32>
    %s = nn.cross_entropy_grad %a, %label, %p#1, %focal : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %t = nn.cross_entropy_grad %b, %label, %q#1, %rows : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %v = arith.addf %s, %t : tensor<4x8xf32>
    %m = arith.addf %p#0, %q#0 : tensor<4xf32>
    %e = nn.reduce sum "b v ->" %v : tensor<4x8xf32> -> tensor<f32>
    %f = nn.reduce sum "b ->" %m : tensor<4xf32> -> tensor<f32>
    %z = arith.addf %e, %f : tensor<f32>
    fsdp.output "y" %z
  }
  // Not joined: other ranks have classes, or a count that is reduced over ranks comes after the loss. A count that is there before it is used.
  // CHECK-LABEL: fsdp.segment @waits
  // CHECK: nn.partial_cross_entropy {{.*}} -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>{{$}}
  // CHECK: nn.cross_entropy_grad
  // CHECK: nn.cross_entropy {{.*}} -> tensor<4xf32>, tensor<4xf32>{{$}}
  // CHECK: nn.cross_entropy {{.*}} upstream
  // CHECK: nn.cross_entropy_grad
  // CHECK-NOT: nn.cross_entropy_grad
  // CHECK: fsdp.output
  fsdp.segment @waits evaluate next [@whole, @part, @apart, @depends, @waits] {
    %x = fsdp.input "x" sample_dim 0 : tensor<4x8xf32>
    %label = fsdp.input "label" sample_dim 0 : tensor<4xi32>
    %d = arith.constant dense<0.5> : tensor<4xf32>
    %a = math.exp %x : tensor<4x8xf32>
    %b = math.tanh %x : tensor<4x8xf32>
    %c = math.sqrt %x : tensor<4x8xf32>
    %count = fsdp.shard_size of 15 over ["tensor"]
    %p:3 = nn.partial_cross_entropy %a, %label of %count : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    %top = fsdp.all_reduce max %p#0 over ["tensor"] : tensor<4xf32>
    %shift = arith.subf %p#0, %top : tensor<4xf32>
    %scale = math.exp %shift : tensor<4xf32>
    %scaled = arith.mulf %p#1, %scale : tensor<4xf32>
    %total = fsdp.all_reduce sum %scaled over ["tensor"] : tensor<4xf32>
    %log = math.log %total : tensor<4xf32>
    %lse = arith.addf %log, %top : tensor<4xf32>
    %s = nn.cross_entropy_grad %a, %label, %lse, %d of %count : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %q:2 = nn.cross_entropy %b, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %weights = arith.sitofp %label : tensor<4xi32> to tensor<4xf32>
    %weight = nn.reduce sum "b ->" %weights : tensor<4xf32> -> tensor<f32>
    %samples = fsdp.all_reduce sum %weight over ["fsdp"] : tensor<f32>
    %r:2 = nn.cross_entropy %c, %label : tensor<4x8xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xf32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %part = arith.divf %one, %samples : tensor<f32>
    %each = nn.repeat "-> b" %part : tensor<f32> -> tensor<4xf32>
    %t = nn.cross_entropy_grad %b, %label, %q#1, %each : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %u = nn.cross_entropy_grad %c, %label, %r#1, %each : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>
    %v = arith.addf %s, %t : tensor<4x8xf32>
    %w = arith.addf %v, %u : tensor<4x8xf32>
    %m = arith.addf %q#0, %r#0 : tensor<4xf32>
    %n = arith.addf %m, %p#2 : tensor<4xf32>
    %e = nn.reduce sum "b v ->" %w : tensor<4x8xf32> -> tensor<f32>
    %f = nn.reduce sum "b ->" %n : tensor<4xf32> -> tensor<f32>
    %z = arith.addf %e, %f : tensor<f32>
    fsdp.output "y" %z
  }
}
}
