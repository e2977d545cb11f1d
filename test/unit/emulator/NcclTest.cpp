//===- NcclTest.cpp - ranks as threads, each with its device -----------------------===//

#include "Emulation.h"

#include "nccl.h"

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

using testing::HasSubstr;

namespace {

class Nccl : public NcclEmulation {};

/// Runs `body(rank, communicator, stream)` on threads, each on device `rank`.
void onRanks(int ranks, const std::function<void(int, ncclComm_t, cudaStream_t)> &body) {
  onDevices(ranks, [&](int r, ncclUniqueId id) {
    ncclComm_t comm;
    cudaStream_t stream;
    ASSERT_EQ(ncclCommInitRank(&comm, ranks, id, r), ncclSuccess);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    body(r, comm, stream);
    ncclCommDestroy(comm);
    cudaStreamDestroy(stream);
  });
}

TEST_F(Nccl, GroupedSendsAndReceivesMeet) {
  for (const char *words : {"devices=3", "deferred,seed=4,devices=3"}) {
    emulator::configure(words);
    onRanks(3, [](int r, ncclComm_t comm, cudaStream_t stream) {
      const float mine[3] = {1.0f + r, 10.0f + r, 100.0f + r};
      Buffer<float> x(3), y(3);
      OK(cudaMemcpyAsync(x.data, mine, 12, cudaMemcpyHostToDevice, stream));
      // An all-to-all, itself included, twice: the n-th send meets the n-th receive.
      for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        for (int peer = 0; peer < 3; ++peer) {
          ASSERT_EQ(ncclSend(x.data + peer, 1, ncclFloat, peer, comm, stream), ncclSuccess);
          ASSERT_EQ(ncclRecv(y.data + peer, 1, ncclFloat, peer, comm, stream), ncclSuccess);
        }
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
        ASSERT_EQ(ncclAllReduce(x.data, x.data, 3, ncclFloat, ncclMax, comm, stream), ncclSuccess);
        OK(cudaStreamSynchronize(stream));
        const float scale = r == 0 ? 1.0f : r == 1 ? 10.0f : 100.0f;
        if (round == 0)
          EXPECT_EQ(y.values(), (std::vector<float>{scale, scale + 1, scale + 2}));
        else
          EXPECT_EQ(y.values(), (std::vector<float>(3, scale + 2)));
      }
      // Outside of a group: a shift along a line.
      if (r > 0)
        ASSERT_EQ(ncclRecv(y.data, 3, ncclFloat, r - 1, comm, stream), ncclSuccess);
      if (r < 2)
        ASSERT_EQ(ncclSend(x.data, 3, ncclFloat, r + 1, comm, stream), ncclSuccess);
      OK(cudaStreamSynchronize(stream));
      EXPECT_EQ(y.values(),
                r == 0 ? std::vector<float>(3, 3.0f) : (std::vector<float>{3, 12, 102}));
    });
  }
}

// What is enqueued inside of a group comes before all of its collectives.
TEST_F(Nccl, CollectivesOfAGroupBeginAtItsEnd) {
  for (const char *words : {"devices=2", "deferred,seed=4,devices=2"}) {
    emulator::configure(words);
    onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
      const float first[1] = {1.0f + r}, later[1] = {10.0f + r};
      Buffer<float> x(1), y(2), z(2);
      OK(cudaMemcpyAsync(x.data, first, 4, cudaMemcpyHostToDevice, stream));
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(ncclAllGather(x.data, y.data, 1, ncclFloat, comm, stream), ncclSuccess);
      OK(cudaMemcpyAsync(x.data, later, 4, cudaMemcpyHostToDevice, stream));
      ASSERT_EQ(ncclAllGather(x.data, z.data, 1, ncclFloat, comm, stream), ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      OK(cudaStreamSynchronize(stream));
      EXPECT_EQ(y.values(), (std::vector<float>{10, 11}));
      EXPECT_EQ(z.values(), (std::vector<float>{10, 11}));
    });
  }
}

TEST_F(Nccl, RefusesAFaultOfARankThatThereIsNot) {
  emulator::configure("devices=2,window=fail:2");
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidUsage);
  EXPECT_EQ(emulator::failure(), "window=fail:2 with 2 ranks: expected a rank from 0 to 1");
}

TEST_F(Nccl, ChecksSendsAndReceives) {
  emulator::configure("devices=2");
  onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
    Buffer<float> x(3);
    EXPECT_EQ(ncclSend(x.data, 1, ncclFloat, 2, comm, stream), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("ncclSend : invalid root 2"));
    EXPECT_EQ(ncclRecv(x.data, 4, ncclFloat, 1 - r, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(x.data, 1, ncclFloat, r, comm, stream), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("send to self without a matching recv"));
    EXPECT_EQ(ncclRecv(x.data, 1, ncclFloat, r, comm, stream), ncclInvalidUsage);
  });
}

TEST_F(Nccl, FindsSendsThatDoNotFit) {
  emulator::configure("devices=2");
  onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
    Buffer<float> x(3);
    if (r == 0)
      ncclSend(x.data, 3, ncclFloat, 1, comm, stream);
    else
      ncclRecv(x.data, 2, ncclFloat, 0, comm, stream);
  });
  EXPECT_THAT(emulator::failure(),
              HasSubstr("rank 0 sends 12 bytes of type 7 to rank 1, which receives 8 bytes"));
}

TEST_F(Nccl, FindsSendsThatWaitForOneAnother) {
  emulator::configure("devices=2,deadlock=0.3");
  onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
    Buffer<float> x(3), y(3);
    ncclSend(x.data, 3, ncclFloat, 1 - r, comm, stream);
    ncclRecv(y.data, 3, ncclFloat, 1 - r, comm, stream);
  });
  EXPECT_THAT(emulator::failure(), testing::AllOf(HasSubstr("no stream can go on"),
                                                  HasSubstr("is in ncclSend and ncclRecv")));
}

TEST_F(Nccl, CollectivesHaveTheirSemantics) {
  for (const char *words : {"devices=3", "deferred,seed=4,devices=3"}) {
    emulator::configure(words);
    onRanks(3, [](int r, ncclComm_t comm, cudaStream_t stream) {
      const float mine[3] = {1.0f + r, 10.0f + r, 100.0f + r};
      Buffer<float> x(3), whole(9), sum(3), part(1), last(3);
      OK(cudaMemcpyAsync(x.data, mine, 12, cudaMemcpyHostToDevice, stream));
      ASSERT_EQ(ncclAllGather(x.data, whole.data, 3, ncclFloat, comm, stream), ncclSuccess);
      ASSERT_EQ(ncclReduceScatter(x.data, part.data, 1, ncclFloat, ncclSum, comm, stream),
                ncclSuccess);
      ASSERT_EQ(ncclAllReduce(x.data, sum.data, 3, ncclFloat, ncclMax, comm, stream), ncclSuccess);
      ASSERT_EQ(ncclBroadcast(x.data, last.data, 3, ncclFloat, 2, comm, stream), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(x.data, x.data, 3, ncclFloat, ncclSum, comm, stream), ncclSuccess);
      OK(cudaStreamSynchronize(stream));
      EXPECT_EQ(whole.values(), (std::vector<float>{1, 10, 100, 2, 11, 101, 3, 12, 102}));
      EXPECT_EQ(part.values()[0], r == 0 ? 6.0f : r == 1 ? 33.0f : 303.0f);
      EXPECT_EQ(sum.values(), (std::vector<float>{3, 12, 102}));
      EXPECT_EQ(last.values(), (std::vector<float>{3, 12, 102}));
      EXPECT_EQ(x.values(), (std::vector<float>{6, 33, 303}));
    });
  }
}

TEST_F(Nccl, SplitsByColorAndKey) {
  emulator::configure("devices=4");
  onRanks(4, [](int r, ncclComm_t comm, cudaStream_t stream) {
    ncclComm_t part;
    ASSERT_EQ(ncclCommSplit(comm, r % 2, -r, &part, nullptr), ncclSuccess);
    int rank, count;
    ASSERT_EQ(ncclCommUserRank(part, &rank), ncclSuccess);
    ASSERT_EQ(ncclCommCount(part, &count), ncclSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(rank, r < 2); // the keys turn the order round
    Buffer<int> x(1), all(2);
    OK(cudaMemcpyAsync(x.data, &r, 4, cudaMemcpyHostToDevice, stream));
    ASSERT_EQ(ncclAllGather(x.data, all.data, 1, ncclInt, part, stream), ncclSuccess);
    OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(all.values(), (std::vector<int>{r % 2 + 2, r % 2}));
    ncclCommDestroy(part);
    ASSERT_EQ(ncclCommSplit(comm, r ? 0 : NCCL_SPLIT_NOCOLOR, r, &part, nullptr), ncclSuccess);
    EXPECT_EQ(part == nullptr, r == 0);
    if (part)
      ncclCommDestroy(part);
  });
}

TEST_F(Nccl, RanksThatDisagreeAreNamed) {
  emulator::configure("devices=2,deadlock=1");
  onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
    Buffer<float> x(4), y(8);
    if (r)
      (void)ncclAllReduce(x.data, y.data, 4, ncclFloat, ncclSum, comm, stream);
    else
      (void)ncclAllGather(x.data, y.data, 4, ncclFloat, comm, stream);
  });
  EXPECT_THAT(emulator::failure(),
              HasSubstr("collective 0 of a communicator: rank 0 calls ncclAllGather of 4 elements "
                        "of type 7, rank 1 calls ncclAllReduce of 4"));
}

TEST_F(Nccl, ARankThatStaysAwayIsNoHang) {
  emulator::configure("devices=2,deadlock=0.3");
  onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
    Buffer<float> x(4);
    if (r) {
      EXPECT_EQ(ncclAllReduce(x.data, x.data, 4, ncclFloat, ncclSum, comm, stream),
                ncclUnhandledCudaError);
    }
  });
  EXPECT_THAT(emulator::failure(),
              testing::AllOf(HasSubstr("no stream can go on"), HasSubstr("is in ncclAllReduce")));
}

TEST_F(Nccl, BuffersAndDevicesAreChecked) {
  emulator::configure("devices=2,deadlock=0.3");
  onRanks(1, [](int, ncclComm_t comm, cudaStream_t stream) {
    Buffer<float> x(4), y(4);
    float host[4] = {};
    EXPECT_EQ(ncclAllReduce(x.data, y.data, 5, ncclFloat, ncclSum, comm, stream),
              ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("got 20 bytes at 0 of an allocation"));
    EXPECT_EQ(ncclAllReduce(host, y.data, 4, ncclFloat, ncclSum, comm, stream),
              ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("got host memory, expected device memory"));
    EXPECT_EQ(ncclAllReduce(x.data, x.data + 1, 3, ncclFloat, ncclSum, comm, stream),
              ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("overlap"));
  });
  ncclUniqueId id;
  ncclComm_t comm;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::thread other([&] {
    ncclComm_t theirs;
    EXPECT_EQ(ncclCommInitRank(&theirs, 2, id, 1), ncclInvalidUsage);
  });
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("Duplicate GPU detected"));
  other.join();
}

TEST_F(Nccl, ACommunicatorTakesMemoryWhenItIsUsed) {
  emulator::configure("devices=2,memory=1e9");
  onRanks(2, [](int, ncclComm_t comm, cudaStream_t stream) {
    std::size_t before = 0, after = 0, total = 0;
    Buffer<float> x(1);
    OK(cudaMemGetInfo(&before, &total));
    ASSERT_EQ(ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, comm, stream), ncclSuccess);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemGetInfo(&after, &total));
    EXPECT_EQ(before - after, std::size_t(300) << 20);
    ncclComm_t parts[3];
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &parts[i], nullptr), ncclSuccess);
      EXPECT_EQ(ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, parts[i], stream),
                i < 2 ? ncclSuccess : ncclUnhandledCudaError);
    }
    EXPECT_THAT(ncclGetLastError(comm),
                HasSubstr("a communicator takes 314572800 bytes of device"));
    OK(cudaStreamSynchronize(stream));
    for (ncclComm_t part : parts)
      ncclCommDestroy(part);
    OK(cudaMemGetInfo(&before, &total));
    EXPECT_EQ(before, after);
  });
}

TEST_F(Nccl, KernelsOfSeveralCommunicatorsNeedTheOrderOfLaunches) {
  for (bool ordered : {false, true}) {
    emulator::reset();
    emulator::configure("devices=2");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", ordered ? "1" : "0", /*overwrite=*/1);
    onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
      ncclComm_t part = nullptr;
      ASSERT_EQ(ncclCommSplit(comm, 0, r, &part, nullptr), ncclSuccess);
      Buffer<float> x(1);
      (void)ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, part, stream);
      (void)ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, comm, stream);
      (void)ncclCommDestroy(part);
    });
    if (ordered)
      EXPECT_EQ(emulator::failure(), "");
    else
      EXPECT_THAT(emulator::failure(), HasSubstr("without NCCL_LAUNCH_ORDER_IMPLICIT"));
  }
}

TEST_F(Nccl, KernelsThatFitAtOnceNeedNoOrderOfLaunches) {
  for (int blocks : {66, 67}) {
    emulator::reset();
    emulator::configure("devices=2");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", /*overwrite=*/1);
    onRanks(2, [blocks](int r, ncclComm_t comm, cudaStream_t stream) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.maxCTAs = blocks;
      ncclComm_t parts[2] = {};
      for (ncclComm_t &part : parts)
        ASSERT_EQ(ncclCommSplit(comm, 0, r, &part, &config), ncclSuccess);
      Buffer<float> x(1);
      for (ncclComm_t part : parts)
        (void)ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, part, stream);
      for (ncclComm_t part : parts)
        (void)ncclCommDestroy(part);
    });
    if (blocks == 66)
      EXPECT_EQ(emulator::failure(), "");
    else
      EXPECT_THAT(emulator::failure(),
                  HasSubstr("the 134 blocks of 2 of them have no room at once"));
  }
}

// Launches wait for the start of the one before, and not for its end.
TEST_F(Nccl, AKernelThatWaitsKeepsBackThoseBehindIt) {
  for (bool ordered : {false, true}) {
    emulator::reset();
    emulator::configure("devices=2,deferred,seed=1,deadlock=1");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", ordered ? "1" : "0", /*overwrite=*/1);
    onRanks(2, [](int r, ncclComm_t comm, cudaStream_t stream) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.maxCTAs = 8;
      ncclComm_t parts[3] = {};
      for (ncclComm_t &part : parts)
        ASSERT_EQ(ncclCommSplit(comm, 0, r, &part, &config), ncclSuccess);
      Buffer<float> x(1), y(1), z(1);
      cudaStream_t other = nullptr, third = nullptr;
      cudaEvent_t done = nullptr;
      OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
      OK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
      OK(cudaEventCreate(&done));
      const auto sum = [&](int part, Buffer<float> &value, cudaStream_t on) {
        (void)ncclAllReduce(value.data, value.data, 1, ncclFloat, ncclSum, parts[part], on);
      };
      if (r == 0) { // the second kernel waits for the first, the third for nothing
        sum(0, x, stream);
        (void)cudaEventRecord(done, stream);
        (void)cudaStreamWaitEvent(other, done, 0);
        sum(1, y, other);
        sum(2, z, third);
      } else { // the first waits for the third
        sum(2, z, third);
        (void)cudaEventRecord(done, third);
        (void)cudaStreamWaitEvent(stream, done, 0);
        sum(0, x, stream);
        sum(1, y, other);
      }
      for (cudaStream_t on : {stream, other, third})
        (void)cudaStreamSynchronize(on);
      for (ncclComm_t part : parts)
        (void)ncclCommDestroy(part);
      (void)cudaEventDestroy(done);
      (void)cudaStreamDestroy(other);
      (void)cudaStreamDestroy(third);
    });
    EXPECT_EQ(emulator::failure().empty(), !ordered) << emulator::failure();
  }
}

} // namespace
