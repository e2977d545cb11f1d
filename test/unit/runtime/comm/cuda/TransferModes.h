//===- TransferModes.h - modes of cuda-ranks that send and receive ----------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_TRANSFERMODES_H
#define FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_TRANSFERMODES_H

#include "runtime/execution/cuda/Launch.h"
#include "runtime/launches/Collectives.h"
#include "test/unit/runtime/comm/cuda/DeviceJob.h"

#include <chrono>
#include <thread>
#include <vector>

namespace fsdp::rt {

/// Messages from each rank to the next one, without a wait of the host between them.
inline int transfers(Context &c) {
  constexpr std::size_t kMessages = 4, kCount = 3000;
  const int rank = c.rankIn(0);
  const auto span = [](std::size_t place) {
    return ArenaSpan<float>{place * kCount * sizeof(float), kCount};
  };
  for (std::size_t message = 0; message < kMessages; ++message) {
    const std::vector<float> values(kCount, float(100 * rank) + float(message));
    CHECK(c, "start",
          cudaMemcpy(c.touch(span(message).range()), values.data(), kCount * sizeof(float),
                     cudaMemcpyHostToDevice));
  }
  CHECK(c, "start", cudaStreamSynchronize(nullptr));
  for (std::size_t message = 0; message < kMessages; ++message) {
    receive(c, kGather, "receive", 0, Peer{-1}, span(kMessages + message));
    send(c, kGather, "send", 0, Peer{1}, span(message));
  }
  c.synchronize();
  for (std::size_t message = 0; rank > 0 && message < kMessages; ++message) {
    std::vector<float> got(kCount);
    CHECK(c, "end",
          cudaMemcpy(got.data(), c.touch(span(kMessages + message).range()), kCount * sizeof(float),
                     cudaMemcpyDeviceToHost));
    for (float value : got)
      if (value != float(100 * (rank - 1)) + float(message))
        throw base::Error(base::format("message %zu got %g", message, value));
  }
  c.world().barrier(); // until then the next rank reads this one's memory
  return 0;
}

/// After messages between neighbors, the first one from rank 0 to the last rank: the host of rank 0
/// does not wait for that of the other, which comes later. `ends`: rank 0 ends before that.
inline int lateTransfer(Context &c, bool ends) {
  transfers(c);
  const int rank = c.rankIn(0), last = c.sizeOf(0) - 1;
  const ArenaSpan<float> value{0, 1};
  if (rank == 0)
    send(c, kGather, "send", 0, Peer{last}, value);
  if (!ends)
    c.world().barrier();
  else if (rank == last)
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  if (rank == last)
    receive(c, kGather, "receive", 0, Peer{-last}, value);
  c.synchronize();
  if (!ends)
    c.world().barrier();
  return 0;
}

// Every rank of a ring sends to both its neighbors, on streams and communicators that nothing else
// uses.
enum : int { kSendUp, kSendDown, kReceiveUp, kReceiveDown };
constexpr const char *kWays[] = {"send_up", "send_down", "receive_up", "receive_down"};
constexpr CommunicatorSpec kTransfers[] = {{"send_up", {0}, 1, true, true},
                                           {"send_down", {0}, -1, true, true},
                                           {"receive_up", {0}, -1, true, false},
                                           {"receive_down", {0}, 1, true, false}};

/// What goes up and what goes down is sent in another order than it is received. Ranks that are
/// each other's neighbors on both sides have four communicators. `ahead`: what comes from below is
/// received before anything is sent, for which the device must not wait at enqueue.
inline int neighbors(Context &c, bool ahead) {
  constexpr std::size_t kMessages = 3, kCount = 3000;
  const int rank = c.rank(), ranks = c.worldSize();
  const auto span = [](int way, std::size_t message) {
    return ArenaSpan<float>{(std::size_t(way) * kMessages + message) * kCount * sizeof(float),
                            kCount};
  };
  const auto valueOf = [](int rank, int way, std::size_t message) {
    return float(100 * rank + 10 * way) + float(message);
  };
  for (int way : {kSendUp, kSendDown})
    for (std::size_t message = 0; message < kMessages; ++message) {
      const std::vector<float> values(kCount, valueOf(rank, way, message));
      CHECK(c, "start",
            cudaMemcpy(c.touch(span(way, message).range()), values.data(), kCount * sizeof(float),
                       cudaMemcpyHostToDevice));
    }
  CHECK(c, "start", cudaStreamSynchronize(nullptr));
  const auto give = [&](int way, std::size_t message) {
    send(c, way, "send", way, Peer{1}, span(way, message));
  };
  const auto take = [&](int way, std::size_t message) {
    receive(c, way, "receive", way, Peer{-1}, span(way, message));
  };
  for (std::size_t message = 0; message < kMessages; ++message) {
    if (ahead)
      take(kReceiveUp, message);
    give(kSendDown, message);
    give(kSendUp, message);
    if (!ahead)
      take(kReceiveUp, message);
    take(kReceiveDown, message);
  }
  c.synchronize();
  for (int way : {kReceiveUp, kReceiveDown})
    for (std::size_t message = 0; message < kMessages; ++message) {
      std::vector<float> got(kCount);
      CHECK(c, "end",
            cudaMemcpy(got.data(), c.touch(span(way, message).range()), kCount * sizeof(float),
                       cudaMemcpyDeviceToHost));
      const int from = (rank + (way == kReceiveUp ? ranks - 1 : 1)) % ranks;
      const float expected = valueOf(from, way == kReceiveUp ? kSendUp : kSendDown, message);
      for (float value : got)
        if (value != expected)
          throw base::Error(base::format("%s: message %zu got %g, expected %g", kWays[way], message,
                                         value, expected));
    }
  c.world().barrier();
  return 0;
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_TRANSFERMODES_H
