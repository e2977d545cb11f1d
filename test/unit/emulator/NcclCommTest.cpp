//===- NcclCommTest.cpp - how calls on communicators behave -------------------------===//
//
// By NCCL's sources: 2.28.9 unless said otherwise.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "Held.h"
#include "NcclComm.h"
#include "nccl.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

using testing::HasSubstr;

namespace {

class NcclCommunicator : public NcclEmulation {};

/// Runs `body(rank, communicator)` on threads, each on device `rank`; the communicators are
/// blocking or not, and not destroyed.
void onRanks(int ranks, bool blocking, const std::function<void(int, ncclComm_t)> &body) {
  onDevices(ranks, [&](int r, ncclUniqueId id) {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    const ncclResult_t status = ncclCommInitRankConfig(&comm, ranks, id, r, &config);
    ASSERT_EQ(status, blocking ? ncclSuccess : ncclInProgress);
    ASSERT_NE(comm, nullptr);
    body(r, comm);
  });
}

void await(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress)
    ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  ASSERT_EQ(state, ncclSuccess) << ncclGetLastError(comm);
}

TEST_F(NcclCommunicator, IsRefusedWhereCallsAreOnlyRecorded) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  emulator::settings().calls = "calls.txt"; // nothing is recorded here, so that no file is made
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage);
  EXPECT_EQ(comm, nullptr);
  EXPECT_THAT(ncclGetLastError(nullptr),
              HasSubstr("expected a program of --communicator=loopback"));
}

struct Window {
  void *memory = nullptr;
  ncclWindow_t handle = nullptr;
  Window() { EXPECT_EQ(ncclMemAlloc(&memory, 1024), ncclSuccess); }
  ~Window() { (void)ncclMemFree(memory); }
};

TEST_F(NcclCommunicator, IsHeldUntilItIsFreed) {
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

TEST_F(NcclCommunicator, ANonBlockingWindowIsThereLaterThanTheCallReturns) {
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

TEST_F(NcclCommunicator, ANonBlockingSplitIsThereLaterThanTheCallReturns) {
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

TEST_F(NcclCommunicator, ABlockingWindowIsThereWhenTheCallReturns) {
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
    // Another thread may query the state.
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

TEST_F(NcclCommunicator, WindowsOfARankHaveTheSizeOfThoseOfTheOthers) {
  emulator::configure("devices=2");
  onRanks(2, /*blocking=*/true, [](int r, ncclComm_t comm) {
    Window window;
    EXPECT_EQ(ncclCommWindowRegister(comm, window.memory, r == 0 ? 1024 : 512, &window.handle,
                                     NCCL_WIN_COLL_SYMMETRIC),
              ncclInvalidUsage);
  });
  EXPECT_THAT(emulator::failure(), HasSubstr("windows of different sizes"));
}

TEST_F(NcclCommunicator, AWindowIsDeregisteredBeforeItsCommunicatorAndItsMemoryGo) {
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

TEST_F(NcclCommunicator, ASecondThreadMustNotEndTheCallOfTheFirst) {
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

TEST_F(NcclCommunicator, AbortFreesACommunicatorInUseByAnotherThread) {
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

TEST_F(NcclCommunicator, FreedCommunicatorsAreRefused) {
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

TEST_F(NcclCommunicator, CopyEnginesGatherBetweenWindows) {
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

TEST_F(NcclCommunicator, CopyEnginesRaceAtSomeSizes) {
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

TEST_F(NcclCommunicator, AbortEndsNoCopyEngines) {
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

TEST_F(NcclCommunicator, InAGroupAbortEndsACallAndFreesLater) {
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
TEST_F(NcclCommunicator, OldDriversRunOneKernelAfterTheOther) {
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

TEST_F(NcclCommunicator, SeveralAreAbortedInOneGroup) {
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
