// RUN: fsdp-opt %s --fsdp-schedule --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --fsdp-schedule=prefetch=0 --split-input-file | FileCheck %s --check-prefix=PEAK
// RUN: fsdp-opt %s --fsdp-schedule=group=false --split-input-file | FileCheck %s --check-prefix=APART
// RUN: fsdp-opt %s --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule --split-input-file -o %t.mlir
// APART-NOT: parameters.cast

// Casts of two units are one kernel, in the place of the first, where the segment needs more memory later. What uses the second waits for it.
// CHECK-LABEL: fsdp.program @room
// CHECK: %[[DONE:.*]] = fsdp.launch "parameters.cast" on "gather" ins(%[[PA:.*]], %[[PB:.*]] : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) outs(
// CHECK: nn.fused
// CHECK: arith.truncf {{.*}} : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: arith.truncf {{.*}} : tensor<8xf32> to tensor<8xbf16>
// CHECK-NOT: on "gather"
// CHECK: fsdp.launch "addf" on "compute" wait({{.*}}%[[DONE]]
// CHECK-NOT: on "gather"
// CHECK: fsdp.launch "negf"
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<8xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pb at 0>]
fsdp.program @room role {} {
  fsdp.segment @train train next [@train] {
    %g = fsdp.input "g" sample_dim 0 : tensor<8xbf16>
    %a0 = fsdp.load @a "parameter" : tensor<8xf32>
    %a = arith.truncf %a0 {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32> to tensor<8xbf16>
    %x = arith.addf %g, %a : tensor<8xbf16>
    %b0 = fsdp.load @b "parameter" : tensor<8xf32>
    %b = arith.truncf %b0 {fsdp.gathers = @b, fsdp.structure = #fsdp.structure<"b">} : tensor<8xf32> to tensor<8xbf16>
    %y = arith.addf %x, %b : tensor<8xbf16>
    %wide = nn.repeat "a -> a n" %y : tensor<8xbf16> -> tensor<8x64xbf16>
    %most = arith.negf %wide : tensor<8x64xbf16>
    %sum = nn.reduce sum "a n ->" %most : tensor<8x64xbf16> -> tensor<bf16>
  }
}
}

// -----

// Without prefetch, b is cast after the last use of a, and its copy would be there when the segment needs most.
// CHECK-LABEL: fsdp.program @peak
// CHECK: fsdp.launch "parameters.cast"
// PEAK-LABEL: fsdp.program @room
// PEAK: fsdp.launch "parameters.cast"
// PEAK-LABEL: fsdp.program @peak
// PEAK: fsdp.launch "truncf" on "gather" of "a"
// PEAK: fsdp.launch "negf"
// PEAK: fsdp.launch "truncf 2" on "gather" of "b"
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<8xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pb at 0>]
fsdp.program @peak role {} {
  fsdp.segment @train train next [@train] {
    %g = fsdp.input "g" sample_dim 0 : tensor<8xbf16>
    %a0 = fsdp.load @a "parameter" : tensor<8xf32>
    %a = arith.truncf %a0 {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32> to tensor<8xbf16>
    %y = arith.addf %g, %a : tensor<8xbf16>
    %wide = nn.repeat "a -> a n" %y : tensor<8xbf16> -> tensor<8x64xbf16>
    %most = arith.negf %wide : tensor<8x64xbf16>
    %sum = nn.reduce sum "a n ->" %most : tensor<8x64xbf16> -> tensor<bf16>
    %q = arith.addf %y, %a : tensor<8xbf16>
    %b0 = fsdp.load @b "parameter" : tensor<8xf32>
    %b = arith.truncf %b0 {fsdp.gathers = @b, fsdp.structure = #fsdp.structure<"b">} : tensor<8xf32> to tensor<8xbf16>
    %z = arith.addf %q, %b : tensor<8xbf16>
  }
}
}

// -----

// Collectives follow.
// CHECK-LABEL: fsdp.program @gathered
// CHECK: fsdp.launch "truncf" on "gather" of "a"
// CHECK: fsdp.launch "truncf 2" on "gather" of "b"
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<8xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<4xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pb at 0>]
fsdp.program @gathered role {} {
  fsdp.segment @train train next [@train] {
    %g = fsdp.input "g" sample_dim 0 : tensor<8xbf16>
    %a0 = fsdp.load @a "parameter" : tensor<4xf32>
    %ac = arith.truncf %a0 {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a">} : tensor<4xf32> to tensor<4xbf16>
    %a = fsdp.all_gather %ac dim 0 over ["fsdp"] {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a">} : tensor<4xbf16> -> tensor<8xbf16>
    %x = arith.addf %g, %a : tensor<8xbf16>
    %b0 = fsdp.load @b "parameter" : tensor<4xf32>
    %bc = arith.truncf %b0 {fsdp.gathers = @b, fsdp.structure = #fsdp.structure<"b">} : tensor<4xf32> to tensor<4xbf16>
    %b = fsdp.all_gather %bc dim 0 over ["fsdp"] {fsdp.gathers = @b, fsdp.structure = #fsdp.structure<"b">} : tensor<4xbf16> -> tensor<8xbf16>
    %y = arith.addf %x, %b : tensor<8xbf16>
    %wide = nn.repeat "a -> a n" %y : tensor<8xbf16> -> tensor<8x64xbf16>
    %most = arith.negf %wide : tensor<8x64xbf16>
    %sum = nn.reduce sum "a n ->" %most : tensor<8x64xbf16> -> tensor<bf16>
  }
}
}

// -----

// An update changes b after the first cast.
// CHECK-LABEL: fsdp.program @changed
// CHECK: fsdp.launch "truncf 2" on "gather" of "a"
// CHECK: fsdp.launch "b optimizer_step"
// CHECK: fsdp.launch "truncf 3" on "gather" of "b"
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<8xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pb at 0>]
fsdp.program @changed role {} {
  fsdp.segment @train train next [@train] {
    %g32 = fsdp.input "g" sample_dim 0 : tensor<8xf32>
    %g = arith.truncf %g32 : tensor<8xf32> to tensor<8xbf16>
    %a0 = fsdp.load @a "parameter" : tensor<8xf32>
    %a = arith.truncf %a0 {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32> to tensor<8xbf16>
    %x = arith.addf %g, %a : tensor<8xbf16>
    %one = arith.constant dense<1.0> : tensor<f32>
    %norm = nn.reduce sum "a ->" %g32 : tensor<8xf32> -> tensor<f32>
    %ok = fsdp.acceptable %norm norm %norm
    %lr = fsdp.learning_rate <sgd, lr = 0.1>
    %old = fsdp.load @b "parameter" : tensor<8xf32>
    %new = fsdp.optimizer_step <sgd, lr = 0.1> @b %old, %g32 states() lr %lr scale %one if %ok : tensor<8xf32> states 0
    fsdp.store %new, @b "parameter" : tensor<8xf32>
    %b0 = fsdp.load @b "parameter" : tensor<8xf32>
    %b = arith.truncf %b0 {fsdp.gathers = @b, fsdp.structure = #fsdp.structure<"b">} : tensor<8xf32> to tensor<8xbf16>
    %y = arith.addf %x, %b : tensor<8xbf16>
    %wide = nn.repeat "a -> a n" %y : tensor<8xbf16> -> tensor<8x64xbf16>
    %most = arith.negf %wide : tensor<8x64xbf16>
    %sum = nn.reduce sum "a n ->" %most : tensor<8x64xbf16> -> tensor<bf16>
    fsdp.advance if %ok
  }
}
}

// -----

// Other sizes and other directions remain apart.
// CHECK-LABEL: fsdp.program @unlike
// CHECK: fsdp.launch "truncf" on "gather" of "a"
// CHECK: fsdp.launch "truncf 2" on "gather" of "b"
// CHECK: fsdp.launch "truncf 3" on "gather" of "a" backward
module attributes {fsdp.phase = "local"} {
fsdp.mesh @mesh <["fsdp"=1]>
fsdp.param @pa : tensor<8xf32> unit "a" init <constant, 0.0>
fsdp.storage @a : tensor<8xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pa at 0>]
fsdp.param @pb : tensor<16xf32> unit "b" init <constant, 0.0>
fsdp.storage @b : tensor<16xf32> flat over ["fsdp"] states [] members [#fsdp.member<@pb at 0>]
fsdp.program @unlike role {} {
  fsdp.segment @train train next [@train] {
    %g = fsdp.input "g" sample_dim 0 : tensor<8xbf16>
    %a0 = fsdp.load @a "parameter" : tensor<8xf32>
    %a = arith.truncf %a0 {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a">} : tensor<8xf32> to tensor<8xbf16>
    %x = arith.addf %g, %a : tensor<8xbf16>
    %b0 = fsdp.load @b "parameter" : tensor<16xf32>
    %b = arith.truncf %b0 {fsdp.gathers = @b, fsdp.structure = #fsdp.structure<"b">} : tensor<16xf32> to tensor<16xbf16>
    %v = fsdp.view %b at 0 : tensor<16xbf16> -> tensor<8xbf16>
    %w = arith.addf %x, %v : tensor<8xbf16>
    %a20 = fsdp.load @a "parameter" : tensor<8xf32>
    %a2 = arith.truncf %a20 {fsdp.gathers = @a, fsdp.structure = #fsdp.structure<"a" backward>} : tensor<8xf32> to tensor<8xbf16>
    %y = arith.addf %w, %a2 : tensor<8xbf16>
    %wide = nn.repeat "a -> a n" %y : tensor<8xbf16> -> tensor<8x64xbf16>
    %most = arith.negf %wide : tensor<8x64xbf16>
    %sum = nn.reduce sum "a n ->" %most : tensor<8x64xbf16> -> tensor<bf16>
  }
}
}
