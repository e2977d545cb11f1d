//===- NcclTest.cpp - ranks as threads, each with its device -----------------------===//

#include "Emulation.h"

#include "Held.h"
#include "NcclComm.h"
#include "nccl.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

using testing::HasSubstr;

namespace {

class Nccl : public Emulation {
protected:
  Nccl() { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/1); }
  ~Nccl() override { unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT"); }
};

/// Runs `body(rank, communicator, stream)` on threads, each on device `rank`.
void onRanks(int ranks, const std::function<void(int, ncclComm_t, cudaStream_t)> &body) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([=] {
      OK(cudaSetDevice(r));
      ncclComm_t comm;
      cudaStream_t stream;
      ASSERT_EQ(ncclCommInitRank(&comm, ranks, id, r), ncclSuccess);
      OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      body(r, comm, stream);
      ncclCommDestroy(comm);
      cudaStreamDestroy(stream);
    });
  for (std::thread &thread : threads)
    thread.join();
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

TEST_F(Nccl, RefusesAFaultOfARankThatThereIsNot) {
  emulator::configure("devices=2,window=fail:2");
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidUsage);
  EXPECT_EQ(emulator::failure(), "window=fail:2 with 2 ranks: expected a rank from 0 to 1");
}

TEST_F(Nccl, CommunicatorsAreHeldUntilTheyAreFreed) {
  emulator::configure("devices=1");
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const int before = emulator::communicatorsHeld();
  for (ncclResult_t (*release)(ncclComm_t) : {ncclCommDestroy, ncclCommAbort}) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
    EXPECT_EQ(emulator::communicatorsHeld(), before + 1);
    EXPECT_EQ(release(comm), ncclSuccess);
    EXPECT_EQ(emulator::communicatorsHeld(), before);
  }
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

TEST_F(Nccl, CollectivesMeanWhatTheySay) {
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

//===----------------------------------------------------------------------===//
// How calls behave, by NCCL's sources (2.28.9 unless said otherwise)
//===----------------------------------------------------------------------===//

/// As onRanks, with communicators that are blocking or not; whoever `body` aborts is not destroyed.
void onRanks(int ranks, bool blocking, const std::function<void(int, ncclComm_t)> &body) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([=] {
      OK(cudaSetDevice(r));
      ncclComm_t comm = nullptr;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = blocking;
      const ncclResult_t status = ncclCommInitRankConfig(&comm, ranks, id, r, &config);
      ASSERT_EQ(status, blocking ? ncclSuccess : ncclInProgress);
      ASSERT_NE(comm, nullptr);
      body(r, comm);
    });
  for (std::thread &thread : threads)
    thread.join();
}

void await(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress)
    ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  ASSERT_EQ(state, ncclSuccess) << ncclGetLastError(comm);
}

struct Window {
  void *memory = nullptr;
  ncclWindow_t handle = nullptr;
  Window() { EXPECT_EQ(ncclMemAlloc(&memory, 1024), ncclSuccess); }
  ~Window() { (void)ncclMemFree(memory); }
};

TEST_F(Nccl, ANonBlockingWindowIsThereLaterThanTheCallReturns) {
  emulator::configure("devices=2");
  onRanks(2, /*blocking=*/false, [](int, ncclComm_t comm) {
    await(comm);
    Window window;
    EXPECT_EQ(
        ncclCommWindowRegister(comm, window.memory, 1024, &window.handle, NCCL_WIN_COLL_SYMMETRIC),
        ncclSuccess);
    // Not ncclInProgress, and yet it is: the next call is refused, and the refusal stays.
    float *data = static_cast<float *>(window.memory);
    EXPECT_EQ(ncclAllReduce(data, data, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(comm),
                HasSubstr("before the previous operation returned ncclSuccess"));
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclInvalidArgument);
    (void)ncclCommAbort(comm);
    EXPECT_EQ(window.handle, window.memory); // who waits for the thread finds it
  });
}

TEST_F(Nccl, ANonBlockingSplitIsThereLaterThanTheCallReturns) {
  emulator::configure("devices=2");
  onRanks(2, /*blocking=*/false, [](int r, ncclComm_t comm) {
    await(comm);
    ncclComm_t part = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, 0, r, &part, nullptr), ncclSuccess);
    await(comm);
    ASSERT_NE(part, nullptr);
    Buffer<float> x(1);
    EXPECT_EQ(ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, part, nullptr), ncclInProgress);
    await(part);
    OK(cudaStreamSynchronize(nullptr));
    EXPECT_EQ(ncclCommDestroy(part), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  EXPECT_EQ(emulator::failure(), "");
}

TEST_F(Nccl, ABlockingWindowIsThereWhenTheCallReturns) {
  emulator::configure("devices=2");
  onRanks(2, /*blocking=*/true, [](int, ncclComm_t comm) {
    Window window;
    EXPECT_EQ(
        ncclCommWindowRegister(comm, window.memory, 1024, &window.handle, NCCL_WIN_COLL_SYMMETRIC),
        ncclSuccess);
    EXPECT_EQ(window.handle, window.memory);
    float *data = static_cast<float *>(window.memory);
    EXPECT_EQ(ncclAllReduce(data, data, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
    Buffer<float> other(4);
    ncclWindow_t none = nullptr;
    EXPECT_EQ(ncclCommWindowRegister(comm, other.data, 16, &none, NCCL_WIN_COLL_SYMMETRIC),
              ncclUnhandledCudaError);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("memory that ncclMemAlloc did not give"));
    // Another thread may ask for the state.
    std::thread([=] {
      ncclResult_t state = ncclInProgress;
      EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclSuccess);
    }).join();
    EXPECT_EQ(ncclCommWindowDeregister(comm, window.handle), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  EXPECT_EQ(emulator::failure(), "");
}

TEST_F(Nccl, AWindowIsDeregisteredBeforeItsCommunicatorAndItsMemoryGo) {
  for (const char *says :
       {"ncclCommDestroy frees a communicator that has windows",
        "ncclMemFree frees memory that is in a window", "cudaFree got memory of ncclMemAlloc"}) {
    emulator::reset();
    emulator::configure("devices=1");
    onRanks(1, /*blocking=*/true, [=](int, ncclComm_t comm) {
      const char first = says[4]; // C, M or F
      Window window;
      if (first != 'F')
        ASSERT_EQ(ncclCommWindowRegister(comm, window.memory, 1024, &window.handle, 0),
                  ncclSuccess);
      if (first == 'F')
        EXPECT_EQ(cudaFree(window.memory), cudaErrorInvalidValue);
      if (first == 'C')
        (void)ncclCommDestroy(comm);
    });
    EXPECT_THAT(emulator::failure(), HasSubstr(says));
  }
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

TEST_F(Nccl, ASecondThreadMustNotEndTheCallOfTheFirst) {
  emulator::configure("devices=1");
  onRanks(1, /*blocking=*/false, [](int, ncclComm_t comm) {
    std::thread([=] {
      ncclResult_t state;
      (void)ncclCommGetAsyncError(comm, &state);
    }).join();
    (void)ncclCommAbort(comm);
  });
  EXPECT_THAT(emulator::failure(),
              HasSubstr("ncclCommGetAsyncError ends and frees the call that another thread"));
}

TEST_F(Nccl, AbortFreesWhatAnotherThreadIsInsideOf) {
  emulator::configure("devices=2,deadlock=100");
  onRanks(2, /*blocking=*/true, [](int r, ncclComm_t comm) {
    if (r)
      return; // does not come
    Buffer<float> x(1);
    std::thread other([&] {
      (void)cudaSetDevice(0);
      (void)ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, comm, nullptr);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    (void)ncclCommAbort(comm);
    other.join();
  });
  EXPECT_THAT(
      emulator::failure(),
      HasSubstr("ncclCommAbort frees a communicator while another thread is in ncclAllReduce"));
}

TEST_F(Nccl, WhatWasFreedIsNotUsed) {
  emulator::configure("devices=1");
  onRanks(1, /*blocking=*/true, [](int, ncclComm_t comm) {
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(emulator::failure(), "");
    Buffer<float> x(1);
    EXPECT_EQ(ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, comm, nullptr),
              ncclInvalidArgument);
  });
  EXPECT_THAT(emulator::failure(), HasSubstr("ncclAllReduce uses a communicator that was freed"));
}

struct CopyEngines {
  int version, policy;
  bool source, target; ///< in a window
  const char *failure;
  int compute = 90, flags = NCCL_WIN_COLL_SYMMETRIC;
  const char *threshold = "0"; ///< one element is more
};

TEST_F(Nccl, CopyEnginesGatherBetweenWindows) {
  for (const CopyEngines &c :
       {CopyEngines{22809, NCCL_CTA_POLICY_ZERO, true, true, ""},
        CopyEngines{22907, NCCL_CTA_POLICY_ZERO, true, true, "copy engines of NCCL 22907 hangs"},
        CopyEngines{23101, NCCL_CTA_POLICY_ZERO, false, true, "copy engines of NCCL 23101 hangs"},
        CopyEngines{23101, NCCL_CTA_POLICY_ZERO, true, false, ""},
        CopyEngines{23101, NCCL_CTA_POLICY_DEFAULT, true, true, ""},
        CopyEngines{23102, NCCL_CTA_POLICY_ZERO, true, true, ""},
        CopyEngines{22907, NCCL_CTA_POLICY_ZERO, true, true, "", 90, 0},
        CopyEngines{22907, NCCL_CTA_POLICY_DEFAULT, true, true, "NCCL 22907 hangs", 100},
        CopyEngines{22907, NCCL_CTA_POLICY_DEFAULT, true, true, "", 90},
        CopyEngines{22907, NCCL_CTA_POLICY_DEFAULT, true, true, "", 100, 0},
        CopyEngines{22907, NCCL_CTA_POLICY_DEFAULT, true, true, "", 100, NCCL_WIN_COLL_SYMMETRIC,
                    "1"}}) {
    emulator::reset();
    emulator::configure("devices=2");
    emulator::settings().nccl = c.version;
    emulator::settings().compute = c.compute;
    setenv("NCCL_SYM_CE_THRESHOLD", c.threshold, /*overwrite=*/1);
    onRanks(2, /*blocking=*/true, [=](int r, ncclComm_t world) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.CTAPolicy = c.policy;
      ncclComm_t comm = nullptr;
      Window window;
      Buffer<float> other(3);
      ASSERT_EQ(ncclCommSplit(world, 0, r, &comm, &config), ncclSuccess);
      ASSERT_EQ(ncclCommWindowRegister(comm, window.memory, 1024, &window.handle, c.flags),
                ncclSuccess);
      float *inside = static_cast<float *>(window.memory);
      (void)ncclAllGather(c.source ? inside + 8 : other.data, c.target ? inside : other.data + 1, 1,
                          ncclFloat, comm, nullptr);
      (void)cudaStreamSynchronize(nullptr);
      (void)ncclCommWindowDeregister(comm, window.handle);
      (void)ncclCommDestroy(comm);
      (void)ncclCommDestroy(world);
    });
    EXPECT_THAT(emulator::failure(), HasSubstr(c.failure)) << c.version;
    EXPECT_EQ(emulator::failure().empty(), !*c.failure) << c.version << emulator::failure();
  }
  unsetenv("NCCL_SYM_CE_THRESHOLD");
}

TEST_F(Nccl, CopyEnginesRaceAtSomeSizes) {
  for (int ranks : {9, 16, 17, 25, 32, 41}) {
    EXPECT_THAT(emulator::copyEngineFault(22809, ranks), HasSubstr("races")) << ranks;
    EXPECT_EQ(emulator::copyEngineFault(23003, ranks), "") << ranks;
  }
  for (int ranks : {2, 3, 8, 18, 24, 34, 40})
    EXPECT_EQ(emulator::copyEngineFault(22809, ranks), "") << ranks;
  EXPECT_EQ(emulator::copyEngineFault(22902, 9), "");
  emulator::configure("driver=12040");
  EXPECT_THAT(emulator::copyEngineFault(22902, 9), HasSubstr("races"));
}

TEST_F(Nccl, AbortEndsNoCopyEngines) {
  emulator::configure("devices=2,deferred,deadlock=100");
  std::atomic<int> copied{0};
  onRanks(2, /*blocking=*/true, [&](int r, ncclComm_t world) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommSplit(world, 0, r, &comm, &config), ncclSuccess);
    Window window;
    ASSERT_EQ(
        ncclCommWindowRegister(comm, window.memory, 1024, &window.handle, NCCL_WIN_COLL_SYMMETRIC),
        ncclSuccess);
    float *inside = static_cast<float *>(window.memory);
    std::thread late;
    if (r) // comes at last
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(copied, r);
    ASSERT_EQ(ncclAllGather(inside + 8, inside, 1, ncclFloat, comm, nullptr), ncclSuccess);
    ++copied;
    if (r == 0)
      late = std::thread([&] {
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        EXPECT_EQ(copied, 2); // it waited
      });
    (void)cudaStreamSynchronize(nullptr);
    if (r == 0)
      late.join();
  });
}

TEST_F(Nccl, InAGroupAbortEndsACallAndFreesLater) {
  emulator::configure("devices=2,deadlock=100");
  onRanks(2, /*blocking=*/true, [](int r, ncclComm_t comm) {
    if (r)
      return; // does not come
    Window window;
    std::thread other([&] {
      (void)cudaSetDevice(0);
      EXPECT_EQ(ncclCommWindowRegister(comm, window.memory, 1024, &window.handle,
                                       NCCL_WIN_COLL_SYMMETRIC),
                ncclSystemError);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ncclGroupStart();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    other.join();
    ncclGroupEnd();
  });
  EXPECT_EQ(emulator::failure(), "");
}

// A chain of two ranks, which receives, sums and sends: the sum of rank 1 is launched behind its
// receive.
TEST_F(Nccl, OldDriversRunOneKernelAfterTheOther) {
  for (int driver : {12020, 12030}) {
    emulator::reset();
    emulator::configure("devices=2,deferred,deadlock=0.3,queues=1,driver=" +
                        std::to_string(driver));
    onRanks(2, /*blocking=*/true, [](int r, ncclComm_t comm) {
      Buffer<float> x(1), y(1);
      ncclComm_t sums = nullptr;
      cudaStream_t first = nullptr, second = nullptr;
      OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
      OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
      ASSERT_EQ(ncclCommSplit(comm, 0, r, &sums, nullptr), ncclSuccess);
      if (r == 1)
        (void)ncclRecv(x.data, 1, ncclFloat, 0, comm, first);
      (void)ncclAllReduce(y.data, y.data, 1, ncclFloat, ncclSum, sums, second);
      if (r == 0)
        (void)ncclSend(x.data, 1, ncclFloat, 1, comm, first);
      (void)cudaDeviceSynchronize();
      (void)ncclCommDestroy(sums);
      (void)ncclCommDestroy(comm);
    });
    EXPECT_EQ(emulator::failure().empty(), driver >= 12030) << emulator::failure();
  }
}

TEST_F(Nccl, SeveralAreAbortedInOneGroup) {
  for (bool grouped : {false, true}) {
    emulator::reset();
    emulator::configure("devices=2,deferred,deadlock=100");
    onRanks(2, /*blocking=*/true, [=](int r, ncclComm_t comm) {
      ncclComm_t part = nullptr;
      ASSERT_EQ(ncclCommSplit(comm, 0, r, &part, nullptr), ncclSuccess);
      if (r)
        return; // does not come to the collective
      Buffer<float> x(1);
      EXPECT_EQ(ncclAllReduce(x.data, x.data, 1, ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
      if (grouped)
        ncclGroupStart();
      (void)ncclCommAbort(part);
      (void)ncclCommAbort(comm);
      if (grouped)
        ncclGroupEnd();
    });
    EXPECT_THAT(emulator::failure(), HasSubstr(grouped ? "a communicator was aborted"
                                                       : "abort all of them in one group"));
  }
}

} // namespace
