//===- RoleModes.h - modes of cuda-ranks whose ranks run different programs -===//
#ifndef FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_ROLEMODES_H
#define FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_ROLEMODES_H

#include "runtime/execution/cuda/Launch.h"
#include "runtime/launches/Collectives.h"
#include "test/unit/runtime/comm/cuda/DeviceJob.h"

#include <string>
#include <vector>

namespace fsdp::rt {

// Two roles on a mesh pipeline=2,fsdp=N: the first gathers, sends up and receives what comes down.
enum : int { kRoleCompute, kRoleGather, kRoleNorm, kRoleSend, kRoleReceive };
constexpr const char *kRoleStreams[] = {"compute", "gather", "norm", "send", "receive"};
enum : int { kOverFsdp, kOverNorm, kOverUnused, kUpSend, kUpReceive, kDownSend, kDownReceive };

/// What the role with number `role` has in the table that the roles share.
inline std::vector<CommunicatorSpec> communicatorsOfRole(int role) {
  const bool isFirst = role == 0;
  return {{"fsdp gather", {1}, 0, false, false, isFirst ? FirstUse::Gather : FirstUse::None},
          {"pipeline norm", {0}, 0, false, false, FirstUse::Other},
          {"unused", {0, 1}},
          {"send up", {0}, 1, false, true},
          {"receive up", {0}, -1, false, false},
          {"send down", {0}, -1, false, true},
          {"receive down", {0}, 1, false, false}};
}
constexpr std::size_t arenaOfRole(int role) { return kArena / (role == 0 ? 1 : 2); }

/// `behind`: a receive waits for a buffer that is free only after a message that the second role
/// sends after it has got one that the first sends later.
inline int roles(Context &c, const std::string &mode) {
  const bool isFirst = c.coordinate(0) == 0, behind = mode == "roles-behind";
  constexpr std::size_t kCount = 1000;
  const auto span = [](std::size_t place) {
    return ArenaSpan<float>{place * kCount * sizeof(float), kCount};
  };
  const auto part = span(0);
  const ArenaSpan<float> whole{kCount * sizeof(float), 4 * kCount};
  const auto up = span(5), down = span(6), later = span(7);
  // Sums over both roles are at another place in each.
  const ArenaSpan<float> norm{(isFirst ? 8 : 9) * kCount * sizeof(float), 1};
  const auto copy = [&](int stream, const char *name, ArenaSpan<float> from, ArenaSpan<float> to) {
    launch(c, stream, name, reads(from), writes(to),
           [&](const float *source, float *target, WorkStream on) {
             return cudaMemcpyAsync(target, source, from.bytes(), cudaMemcpyDeviceToDevice, on);
           });
  };
  const std::size_t ranks = static_cast<std::size_t>(c.sizeOf(kOverFsdp));
  const std::vector<float> own(
      kCount, float(c.coordinate(0) * static_cast<int>(ranks) + c.coordinate(1) + 1));
  CHECK(c, "start",
        cudaMemcpy(c.touch(part.range()), own.data(), part.bytes(), cudaMemcpyHostToDevice));
  CHECK(c, "start",
        cudaMemcpy(c.touch(norm.range()), own.data(), norm.bytes(), cudaMemcpyHostToDevice));
  CHECK(c, "start", cudaStreamSynchronize(nullptr));
  const ExecutionPlan &plan = c.program().train;
  for (int step = 0; step < 3; ++step) {
    c.begin(plan, nullptr);
    if (isFirst) {
      receive(c, kRoleReceive, "receive down", kDownReceive, Peer{-1}, down);
      record(c, kRoleReceive, 0);
      // Grows in the first step, and waits for the device then, where no receive may be that waits
      // for what comes after it.
      launch(c, kRoleCompute, "grow", reads(), writes(), [](WorkStream on) {
        std::byte *scratch = nullptr;
        return on.workspace->reserve(4096, scratch);
      });
      if (behind) {
        wait(c, kRoleCompute, 0);
        copy(kRoleCompute, "use", down, later);
        record(c, kRoleCompute, 1);
        wait(c, kRoleReceive, 1); // the buffer is free
        receive(c, kRoleReceive, "receive down 2", kDownReceive, Peer{-1}, down);
        record(c, kRoleReceive, 2);
      }
      all_gather(c, kRoleGather, "gather", kOverFsdp, ShardLayout{1, kCount, 1, ranks * kCount},
                 part, ArenaSpan<float>{whole.offset, ranks * kCount});
      record(c, kRoleGather, 3);
      wait(c, kRoleSend, 3);
      send(c, kRoleSend, "send up", kUpSend, Peer{1}, span(1));
      wait(c, kRoleCompute, behind ? 2 : 0);
      copy(kRoleCompute, "use", down, later);
    } else {
      receive(c, kRoleReceive, "receive up", kUpReceive, Peer{-1}, up);
      record(c, kRoleReceive, 0);
      wait(c, kRoleCompute, 0);
      copy(kRoleCompute, "use", up, down);
      record(c, kRoleCompute, 1);
      wait(c, kRoleSend, 1);
      for (int message = 0; message <= behind; ++message)
        send(c, kRoleSend, "send down", kDownSend, Peer{1}, down);
    }
    all_reduce(c, kRoleNorm, "norm", kOverNorm, ReduceOp::Sum, norm, norm);
    c.synchronize();
  }
  // The first rank of the first role has 1, which is sent, and sent back.
  std::vector<float> got(kCount);
  CHECK(c, "end",
        cudaMemcpy(got.data(), c.touch((isFirst ? later : up).range()), later.bytes(),
                   cudaMemcpyDeviceToHost));
  for (float value : got)
    if (value != 1)
      throw base::Error(base::format("got %g, expected 1", value));
  CHECK(c, "end",
        cudaMemcpy(got.data(), c.touch(norm.range()), norm.bytes(), cudaMemcpyDeviceToHost));
  const float sum = 4 * float(2 * (c.coordinate(1) + 1) + static_cast<int>(ranks));
  if (got[0] != sum)
    throw base::Error(base::format("got a sum of %g, expected %g", got[0], sum));
  if (mode == "roles-unlisted" && !isFirst)
    all_gather(c, kRoleGather, "gather", kOverFsdp, ShardLayout{1, kCount, 1, ranks * kCount}, part,
               ArenaSpan<float>{whole.offset, ranks * kCount});
  if (mode == "roles-describe" && c.rank() == 0)
    std::printf("%s\n", c.describeCollectives().c_str());
  c.world().barrier();
  return 0;
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_ROLEMODES_H
