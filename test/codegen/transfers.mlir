// Every rank sends to the next one and, on other streams, back: what both targets call, and that schedule, checker,
// record and interpreter take transfers through every phase. check_transfers.py trains with this module.
// RUN: fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule --fsdp-verify-phase %s > %t.scheduled
// RUN: FileCheck %s --input-file=%t.scheduled --check-prefix=SCHEDULED
// RUN: fsdp-translate --fsdp-to-cpp %t.scheduled | FileCheck %s
// RUN: fsdp-translate --fsdp-to-cuda %t.scheduled | FileCheck %s
// RUN: fsdp-translate --fsdp-to-record %t.scheduled | FileCheck %s --check-prefix=RECORD

// Values that go up and values that go down, sent and received, are on four streams; nothing is computed from what has not arrived.
// SCHEDULED: %[[SENT:.*]] = fsdp.launch "y send" on "send_up" wait(%{{.*}}) ins(%[[Y:.*]] : !fsdp.buffer<tensor<2x4xf32>>)
// SCHEDULED-NEXT: ^bb0(%[[X:.*]]: tensor<2x4xf32>):
// SCHEDULED-NEXT: fsdp.send %[[X]] offset 1 over ["context"] : tensor<2x4xf32>
// SCHEDULED: %[[RECEIVED:.*]] = fsdp.launch "before receive" on "receive_up"
// SCHEDULED-NEXT: fsdp.receive offset -1 over ["context"] : tensor<2x4xf32>
// SCHEDULED: fsdp.launch "d" on "compute" wait(%[[RECEIVED]])
// SCHEDULED: fsdp.launch "d send" on "send_down"
// SCHEDULED: fsdp.launch "after receive" on "receive_down"

// In the communicator of a transfer the sender is rank 0 and the receiver rank 1.
// CHECK: send(c, kSendUp, "y send", kOverContextSendUp, Peer{/*offset=*/1}, arena::y);
// CHECK: receive(c, kReceiveUp, "before receive", kOverContextReceiveUp, Peer{/*offset=*/-1},
// CHECK-NEXT: arena::before_receive);
// CHECK: send(c, kSendDown, "d send", kOverContextSendDown, Peer{/*offset=*/1}, arena::d);
// CHECK: receive(c, kReceiveDown, "after receive", kOverContextReceiveDown, Peer{/*offset=*/-1},
// CHECK: constexpr CommunicatorSpec communicators[] = {
// CHECK-NEXT: {.name = "context_send_up", .axes = {kAxisContext}, .offset = 1, .sends = true},
// CHECK-NEXT: {.name = "context_receive_up", .axes = {kAxisContext}, .offset = -1},
// CHECK: {.name = "context_send_down", .axes = {kAxisContext}, .offset = -1, .sends = true},
// CHECK-NEXT: {.name = "context_receive_down", .axes = {kAxisContext}, .offset = 1},

// In a ring, and with an offset of two.
// RUN: sed -E 's/offset (-?)1 over/offset \12 ring over/' %s | fsdp-opt --fsdp-schedule --fsdp-plan-memory --fsdp-link-segments --fsdp-verify-schedule > %t.ring
// RUN: fsdp-translate --fsdp-to-cpp %t.ring | FileCheck %s --check-prefix=RING
// RING: send(c, kSendUp, "y send", kOverContextSendUpBy2Ring, Peer{/*offset=*/1}, arena::y);
// RING: {.name = "context_send_up_by_2_ring", .axes = {kAxisContext}, .offset = 2, .inRing = true,
// RING-NEXT: .sends = true},
// RING-NEXT: {.name = "context_receive_up_by_2_ring", .axes = {kAxisContext}, .offset = -2, .inRing = true},

// Peers match what is sent with one offset in one order: so it is on one stream.
// RUN: sed 's/"d send" on "send_down"/"d send" on "reduce"/;/fsdp.send/s/offset -1/offset 1/' %t.scheduled > %t.streams
// RUN: not fsdp-translate --fsdp-to-cpp %t.streams 2>&1 | FileCheck %s --check-prefix=STREAMS
// STREAMS: error: 'fsdp.launch' op is on stream 'reduce', but another one of the module sends to the rank at offset 1 on stream 'send_up', expected one stream, as peers take these values in one order

// RECORD: launch send_up "y send" reads=[{{[0-9]+}}:32] writes=[] over=context_send_up kind=send
// RECORD: launch receive_up "before receive" reads=[] writes=[{{[0-9]+}}:32] over=context_receive_up kind=receive
// RECORD: launch send_down "d send" reads=[{{[0-9]+}}:32] writes=[] over=context_send_down kind=send
// RECORD: launch receive_down "after receive" reads=[] writes=[{{[0-9]+}}:32] over=context_receive_down kind=receive

module attributes {fsdp.phase = "local"} {
  fsdp.mesh @mesh <["context"=3]>
  fsdp.param @w : tensor<4xf32> unit "u" init <constant, 0.5>
  fsdp.storage @u : tensor<4xf32> replicated over [] states [] members [#fsdp.member<@w at 0>]
  fsdp.program @all role {} {
    fsdp.segment @train train next [@train] {
      // y = x * w, and the loss is the mean over all samples of |y of this rank - y of the rank before|^2.
      %x = fsdp.input "x" sample_dim 0 shard_of 6 over ["context"] : tensor<2x4xf32>
      %p = fsdp.load @u "parameter" : tensor<4xf32>
      %w = nn.repeat "i -> b i" %p : tensor<4xf32> -> tensor<2x4xf32>
      %y = arith.mulf %x, %w : tensor<2x4xf32> loc("y")
      fsdp.send %y offset 1 over ["context"] : tensor<2x4xf32> loc("y")
      %before = fsdp.receive offset -1 over ["context"] : tensor<2x4xf32> loc("before")
      %d = arith.subf %y, %before : tensor<2x4xf32> loc("d")
      %sq = arith.mulf %d, %d : tensor<2x4xf32>
      %part = nn.reduce sum "b i ->" %sq : tensor<2x4xf32> -> tensor<f64>
      %sum = fsdp.all_reduce sum %part over ["context"] : tensor<f64>
      %n = arith.constant dense<6.0> : tensor<f64>
      %mean = arith.divf %sum, %n : tensor<f64>
      %loss = arith.truncf %mean : tensor<f64> to tensor<f32>
      fsdp.output "loss" %loss
      // The rank before adds the gradient of what it has sent.
      fsdp.send %d offset -1 over ["context"] : tensor<2x4xf32> loc("d")
      %after = fsdp.receive offset 1 over ["context"] : tensor<2x4xf32> loc("after")
      %e = arith.subf %d, %after : tensor<2x4xf32> loc("e")
      %k = arith.constant dense<0.33333333333333333> : tensor<2x4xf32>
      %dy = arith.mulf %e, %k : tensor<2x4xf32>
      %dw = arith.mulf %dy, %x : tensor<2x4xf32>
      %own = nn.reduce sum "b i -> i" %dw : tensor<2x4xf32> -> tensor<4xf32>
      %g = fsdp.all_reduce sum %own over ["context"] : tensor<4xf32> loc("g")
      %sq0 = fsdp.square_sum %g : tensor<4xf32>
      %root = math.sqrt %sq0 : tensor<f64>
      %norm = arith.truncf %root : tensor<f64> to tensor<f32>
      fsdp.output "grad_norm" %norm
      %ok = fsdp.acceptable %loss norm %norm
      %lr = fsdp.learning_rate <sgd, lr = 0.1>
      %one = arith.constant dense<1.0> : tensor<f32>
      %p1 = fsdp.optimizer_step <sgd, lr = 0.1> @u %p, %g states() lr %lr scale %one if %ok : tensor<4xf32> states 0
      fsdp.store %p1, @u "parameter" : tensor<4xf32>
      fsdp.advance if %ok
    }
  }
}
