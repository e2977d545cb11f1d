// The CUDA runtime's collectives under the emulator: conformance, streams in adversarial order, and
// faults that every rank must hear of.
#include "test/Extent.h"
#include "test/unit/runtime/comm/cuda/CudaRanksJob.h"

#include <fstream>
#include <gtest/gtest.h>

namespace {

class CudaRanks : public testing::TestWithParam<Backend> {
protected:
  Finished run(const std::string &mesh, const std::string &mode, const std::string &env = "") {
    return runCudaRanks(mesh, mode, GetParam().how, GetParam().emulator, env);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, CudaRanks,
                         testing::Values(Backend{"loopback", "devices=1"},
                                         Backend{"loopback", "devices=1,deferred,seed=7"},
                                         Backend{"nccl", "devices=8"},
                                         Backend{"nccl", "devices=8,deferred,seed=8,nccl=22907"}));

/// In each check, the backends whose streams run late and out of order.
class CudaConformance : public CudaRanks {};

INSTANTIATE_TEST_SUITE_P(Backends, CudaConformance,
                         testing::ValuesIn(fsdp::test::casesOf<Backend>(
                             {{"loopback", "devices=1,deferred,seed=7"},
                              {"nccl", "devices=8,deferred,seed=8,nccl=22907"}},
                             {{"loopback", "devices=1"}, {"nccl", "devices=8"}})));

TEST_P(CudaConformance, Holds) {
  for (const char *mesh :
       fsdp::test::casesOf<const char *>({"data=2,fsdp=2"}, {"fsdp=3", "fsdp=3@2.0.1"})) {
    Finished job = run(mesh, "conformance", "NCCL_DEBUG=INFO ");
    EXPECT_EQ(job.status, 0) << mesh << job.output;
    const std::size_t at = job.output.find("compared ");
    ASSERT_NE(at, std::string::npos) << mesh << job.output;
    EXPECT_GT(std::atol(job.output.c_str() + at + 9), 100'000) << job.output;
    // Copy engines by the size of a communicator: this version hangs with two ranks.
    if (std::string(GetParam().emulator).find("nccl=22907") != std::string::npos &&
        std::string(mesh) == "data=2,fsdp=2") {
      EXPECT_TRUE(job.says("nranks 4 - Init COMPLETE, CTA policy zero")) << job.output;
      EXPECT_TRUE(job.says("nranks 2 - Init COMPLETE, CTA policy default")) << job.output;
      EXPECT_FALSE(job.says("nranks 2 - Init COMPLETE, CTA policy zero")) << job.output;
    }
  }
}

TEST_P(CudaRanks, RunStepsOnStreams) {
  for (const char *mesh :
       {"fsdp=1", "fsdp=2", "fsdp=7", "data=2,fsdp=2", "data=2,fsdp=2@3.1.2.0"}) {
    Finished job = run(mesh, "steps");
    EXPECT_EQ(job.status, 0) << mesh << job.output;
    EXPECT_EQ(job.output, "done\n") << mesh;
  }
}

TEST_P(CudaRanks, TransferWithoutWaitsOfTheHost) {
  for (const char *mesh : {"fsdp=2", "fsdp=4"}) {
    Finished job = run(mesh, "transfers");
    EXPECT_EQ(job.status, 0) << mesh << job.output;
  }
}

// A message is in memory of its sender, which the receiver may read when the sender has ended.
TEST(Loopback, SendersMayEndBeforeReceivers) {
  Finished job = runCudaRanks("fsdp=2", "sender-ends", "loopback", "devices=1,deferred,seed=3");
  EXPECT_EQ(job.status, 0) << job.output;
}

// Of NCCL, sends in a ring need streams that run at the same time.
TEST(CudaTransfers, SendToNeighborsOnBothSides) {
  for (const Backend &backend :
       {Backend{"loopback", "devices=1"}, Backend{"loopback", "devices=1,deferred,seed=7"},
        Backend{"nccl", "devices=8,deferred,seed=8,nccl=22907"}})
    for (const char *mesh : {"pipeline=2", "pipeline=3", "pipeline=4", "pipeline=3@2.0.1"}) {
      Finished job =
          runCudaRanks(mesh, "neighbors", backend.how, backend.emulator, "NCCL_DEBUG=INFO ");
      EXPECT_EQ(job.status, 0) << mesh << job.output;
      EXPECT_EQ(job.output.find("symmetric window"), std::string::npos) << mesh << job.output;
    }
}

TEST(CudaTransfers, ReceiveAheadOfWhatTheySend) {
  for (const char *mesh : {"pipeline=2", "pipeline=3", "pipeline=4"})
    for (const char *seed : {"1", "2", "3"}) {
      Finished job = runCudaRanks(mesh, "neighbors-ahead", "nccl",
                                  std::string("devices=4,leaks,deferred,seed=") + seed);
      EXPECT_EQ(job.status, 0) << mesh << job.output;
    }
}

TEST_P(CudaRanks, GrowAWorkspaceThatIsInUse) {
  Finished job = run("fsdp=1", "grow");
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST_P(CudaRanks, FreeNothingThatIsInUse) {
  Finished job = run("fsdp=2", "unfinished");
  EXPECT_EQ(job.status, 0);
  EXPECT_EQ(job.output, "");
}

// Jobs that end well leave no communicator, memory, stream or event.
TEST(Nccl, FreesItsCommunicators) {
  for (const std::string emulator : {"devices=4,leaks", "devices=4,leaks,deferred,seed=9"}) {
    for (const char *mesh : {"fsdp=1", "fsdp=3", "data=2,fsdp=2"})
      EXPECT_EQ(runCudaRanks(mesh, "even-steps", "nccl", emulator).output, "done\n") << mesh;
    EXPECT_EQ(runCudaRanks("fsdp=2", "steps", "nccl", emulator, "FSDP_NCCL_WINDOW=0 ").output,
              "done\n");
    EXPECT_EQ(runCudaRanks("fsdp=3", "transfers", "nccl", emulator).output, "");
    EXPECT_EQ(runCudaRanks("fsdp=1", "behind", "nccl", emulator).output, "");
  }
}

// Gathers to memory outside of the arena are not made by copy engines, and are aborted.
TEST(Nccl, AbortsGathersOutsideOfTheArena) {
  for (const char *mode : {"throw", "even-throw"}) {
    Finished job = runCudaRanks("fsdp=3", mode, "nccl", "devices=3,deadlock=100,deferred,seed=3",
                                "NCCL_DEBUG=INFO ");
    EXPECT_EQ(job.status, 1) << job.output;
    EXPECT_TRUE(job.says("error: rank 1: the planted fault\n")) << job.output;
    EXPECT_EQ(job.says(" - Abort COMPLETE"), mode == std::string("throw")) << job.output;
  }
}

TEST_P(CudaRanks, HearOfARankThatThrows) {
  Finished job = run("fsdp=3", "throw");
  expectOneError(job, "error: rank 1: the planted fault\n");
  // Nothing is aborted while the host is in a call of NCCL's.
  EXPECT_FALSE(job.says("while another thread is in")) << job.output;
}

TEST_P(CudaRanks, AbortAllCommunicatorsTogether) {
  Finished job = run("data=2,fsdp=2", "fail-behind", "FSDP_NCCL_COPY_ENGINES=0 ");
  expectOneError(job, "error: rank 1: the planted fault\n");
  EXPECT_FALSE(job.says("ncclCommAbort waits for kernels")) << job.output;
}

TEST(Nccl, AbortsNothingWhileTheHostIsInACall) {
  Finished job = runCudaRanks("data=2,fsdp=2", "fail-behind", "nccl", "devices=4,call=0.5",
                              "FSDP_NCCL_COPY_ENGINES=0 ");
  expectOneError(job, "error: rank 1: the planted fault\n");
  EXPECT_FALSE(job.says("while another thread is in")) << job.output;
}

TEST_P(CudaRanks, NameTheCallThatFails) {
  Finished job = run("fsdp=2", "invalid");
  expectOneError(job, "error: rank 1, 'wrong copy': ");
  EXPECT_TRUE(job.says(" at CudaRanksMain.cpp:")) << job.output;
}

TEST_P(CudaRanks, ReplaceNoBatchThatIsStillToBeCopied) {
  Finished job = run("fsdp=1", "behind");
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST_P(CudaRanks, AwaitTheOutputsOfEachStream) {
  Finished job = run("fsdp=1", "outputs");
  EXPECT_EQ(job.status, 0) << job.output;
}

// Where the device runs late.
TEST(Staging, WaitsForNoCopyOfTheSameWalk) {
  Finished job = runCudaRanks("fsdp=1", "ahead", "loopback", "devices=1,deferred,seed=7");
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST_P(CudaRanks, ReportFaults) {
  struct Fault {
    const char *mode, *says;
  };
  for (const Fault &fault :
       {Fault{"blas", "error: rank 1, 'product': cuBLASLt reports CUBLAS_STATUS_NOT_SUPPORTED at "},
        Fault{"joined", "error: rank 1, 'product and kernel': "},
        Fault{"label",
              "error: rank 1, 'cross_entropy': label of row 0 is 7, expected 0 to 3; correct "
              "the data or the model's number of classes\n"},
        Fault{"id",
              "error: rank 1, 'embedding': id 0 of an embedding is 7, expected 0 to 1; correct "
              "the data or the model's vocabulary\n"},
        Fault{"inputs", "a plan uses input 1 where it used input 0 before\n"},
        Fault{"pin", "cannot pin 4503599627370496 bytes of host memory for input 'huge': "}}) {
    Finished job = run("fsdp=2", fault.mode);
    EXPECT_NE(job.status, 0) << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_TRUE(job.says(fault.says)) << job.output;
    EXPECT_LT(job.seconds, kSoon);
  }
}

//===----------------------------------------------------------------------===//
// Before there are ranks
//===----------------------------------------------------------------------===//

TEST(Devices, AreCountedBeforeThereAreRanks) {
  EXPECT_EQ(runCudaRanks("fsdp=4", "count", "nccl", "devices=4").status, 0);
  EXPECT_EQ(runCudaRanks("fsdp=4", "count", "loopback", "devices=1").status, 0);
  Finished few = runCudaRanks("fsdp=4", "count", "nccl", "devices=2");
  EXPECT_EQ(few.status, 3);
  EXPECT_TRUE(few.says("error: got 2 GPU(s) on this machine, expected 4: one for each rank; start "
                       "on more machines with mpirun, srun or torchrun, or run all ranks on one "
                       "GPU with --communicator=loopback\n"))
      << few.output;
  for (const char *how : {"nccl", "loopback"}) {
    Finished none = runCudaRanks("fsdp=4", "count", how, "devices=0");
    EXPECT_EQ(none.status, 3);
    EXPECT_TRUE(none.says("error: no GPU is usable: ")) << none.output;
    EXPECT_TRUE(none.says("this program runs on NVIDIA GPUs only: check nvidia-smi, or compile "
                          "the model with --target=cpu\n"))
        << none.output;
  }
}

TEST(Devices, AreCountedByAProcessThatMayFail) {
  Finished none = runCudaRanks("fsdp=4", "count", "nccl", "devices=4", "FORK=fail ");
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(none.says("error: cannot start a process that counts the GPUs: ")) << none.output;
  Finished killed = runCudaRanks("fsdp=4", "count", "nccl", "devices=4", "FORK=kill ");
  EXPECT_EQ(killed.status, 3);
  EXPECT_TRUE(
      killed.says("error: the process that counts the GPUs died before it reported their number\n"))
      << killed.output;
}

TEST(Names, OfTheOtherTargetAreRefused) {
  for (const char *name : {"auto", "nccl", "loopback"})
    EXPECT_EQ(runCudaRanks("fsdp=2", "name", name, "devices=2").status, 0);
  for (const char *name : {"shm", "mpi"}) {
    Finished refused = runCudaRanks("fsdp=2", "name", name, "devices=2");
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.output, std::string("error: option '--communicator' got '") + name +
                                  "', which only programs compiled with --target=cpu have; "
                                  "expected auto, nccl or loopback\n");
  }
}

//===----------------------------------------------------------------------===//
// Ranks that do not come
//===----------------------------------------------------------------------===//

TEST(Loopback, NamesTheRankThatDoesNotCome) {
  for (const char *mode : {"leave", "sleep"}) {
    Finished job = runCudaRanks("fsdp=3", mode, "loopback", "devices=1", "FSDP_TIMEOUT=3 ");
    EXPECT_EQ(job.status, 1) << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_TRUE(job.says("'gather': timed out after 3 s in 'all_gather of ")) << job.output;
    EXPECT_TRUE(job.says("over 'all axes', waiting for rank 1")) << job.output;
    EXPECT_LT(job.seconds, kSoon);
  }
}

TEST(Loopback, RefusesCollectivesThatDiffer) {
  Finished job = runCudaRanks("fsdp=2", "kind", "loopback", "devices=1");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("'scatter': collectives over 'all axes' do not match: ")) << job.output;
}

// Inline, the host stays inside of NCCL's call; deferred, it waits for the device.
TEST(Nccl, NamesTheCollectiveThatHangs) {
  for (const char *emulator : {"devices=3,deadlock=100", "devices=3,deadlock=100,deferred,seed=3"})
    for (const char *mode : {"leave", "sleep"}) {
      Finished job = runCudaRanks("fsdp=3", mode, "nccl", emulator, "FSDP_TIMEOUT=3 ");
      EXPECT_EQ(job.status, 1) << job.output;
      EXPECT_EQ(job.errors(), 1) << job.output;
      EXPECT_TRUE(job.says("'gather': timed out after 3 s in collective 7 over 'all axes': another "
                           "rank did not join it"))
          << job.output;
      EXPECT_LT(job.seconds, kSoon);
    }
}

// The oldest of more collectives than are remembered.
TEST(Nccl, NamesTheFirstOfManyThatHang) {
  Finished job = runCudaRanks("fsdp=2", "many", "nccl", "devices=2,deadlock=100,deferred,seed=3",
                              "FSDP_TIMEOUT=3 ");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_TRUE(job.says("'sum': timed out after 3 s in collective 2 over 'all axes'")) << job.output;
}

// Rank 0 stays in the call that opens a communicator: nothing is aborted under it.
TEST(Nccl, NamesTheCollectiveWhoseCommunicatorIsNotOpened) {
  Finished job =
      runCudaRanks("fsdp=2", "split", "nccl", "devices=2,deadlock=100", "FSDP_TIMEOUT=3 ");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_TRUE(job.says("'sum': timed out after 3 s in collective 1 over 'all axes'")) << job.output;
  EXPECT_FALSE(job.says("while another thread is in")) << job.output;
}

TEST(Nccl, ConnectsAllRanksAtTheFirstTransfer) {
  Finished job =
      runCudaRanks("fsdp=3", "late-transfer", "nccl", "devices=3,deferred,seed=6,deadlock=5");
  EXPECT_EQ(job.status, 0) << job.output;
}

// Streams that share one hardware queue, in which what waits for another rank is in the way of what
// comes after it.
TEST(Nccl, NeedsNoQueueForEachStream) {
  for (const char *mode : {"even-steps", "conformance", "transfers", "late-transfer"}) {
    Finished job =
        runCudaRanks("fsdp=2", mode, "nccl", "devices=2,deferred,seed=5,queues=1,deadlock=10");
    EXPECT_EQ(job.status, 0) << job.output;
  }
}

TEST(Nccl, NeedsTheOrderOfLaunchesOverCommunicators) {
  Finished job = runCudaRanks("fsdp=2", "steps", "nccl", "devices=2,driver=12020");
  EXPECT_EQ(job.status, 3) << job.output;
  EXPECT_TRUE(job.says("got a driver of CUDA 12.2 and a runtime of CUDA 13.0 for 2 ranks, expected "
                       "12.3 or later: NCCL cannot "
                       "order the kernels of its communicators there, and ranks would wait for one "
                       "another; update the "
                       "driver or the toolkit\n"))
      << job.output;
  EXPECT_EQ(runCudaRanks("fsdp=1", "steps", "nccl", "devices=1,driver=12020").status, 0);
  EXPECT_EQ(runCudaRanks("fsdp=2", "steps", "loopback", "devices=1,driver=12020").status, 0);
}

// What the environment or a configuration file of NCCL says of communicators must not make them
// others than the runtime handles, nor take the order of their kernels away.
TEST(Nccl, IsBlockingAndOrderedInAnyEnvironment) {
  const std::string file = testing::TempDir() + "nccl.conf";
  std::ofstream(file) << "# of a cluster\nNCCL_COMM_BLOCKING=0\nNCCL_LAUNCH_ORDER_IMPLICIT=0\n";
  for (const std::string &said : {std::string("NCCL_COMM_BLOCKING=0 NCCL_LAUNCH_ORDER_IMPLICIT= "),
                                  "NCCL_CONF_FILE=" + file + " "}) {
    Finished job = runCudaRanks("data=1,fsdp=2", "conformance", "nccl", "devices=2", said);
    EXPECT_EQ(job.status, 0) << said << job.output;
  }
}

// A rank by itself needs no NCCL, but can be asked to go through all of it.
TEST(Nccl, OneRankByItself) {
  for (const std::string always : {"", "FSDP_NCCL_ALWAYS=1 "})
    for (const char *mode : {"steps", "conformance"}) {
      Finished job = runCudaRanks("fsdp=1", mode, "nccl", "devices=1", always + "NCCL_DEBUG=INFO ");
      EXPECT_EQ(job.status, 0) << job.output;
      EXPECT_EQ(job.says("ncclCommInitRankConfig rank 0 nranks 1 - Init COMPLETE"),
                !always.empty());
      if (std::string(mode) == "steps")
        EXPECT_EQ(job.says("ncclCommSplit rank 0 nranks 1 - Init COMPLETE"), !always.empty());
    }
}

// The emulated NCCL refuses copy engines where that of the version hangs or races.
TEST(Nccl, UsesCopyEnginesOnlyWhereTheyWork) {
  for (const char *emulator :
       {"devices=2,nccl=22907", "devices=2,nccl=23101,deferred,seed=1", "devices=2,nccl=23102"}) {
    Finished job = runCudaRanks("fsdp=2", "even-steps", "nccl", emulator);
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_EQ(job.output, "done\n");
  }
  Finished racing = runCudaRanks("fsdp=9", "even-steps", "nccl", "devices=9,memory=1e9");
  EXPECT_EQ(racing.output, "done\n");
  Finished forced = runCudaRanks("fsdp=2", "even-steps", "nccl", "devices=2,nccl=22907",
                                 "FSDP_NCCL_COPY_ENGINES=1 ");
  EXPECT_NE(forced.status, 0);
  EXPECT_TRUE(forced.says("copy engines of NCCL 22907 hangs")) << forced.output;
}

// Of more than 8388608 elements NCCL 2.29.2 and later use them on their own, on these devices.
TEST(Nccl, UsesNoCopyEnginesUnasked) {
  for (const char *unset : {"", "NCCL_SYM_CE_THRESHOLD= "})
    EXPECT_EQ(
        runCudaRanks("fsdp=2", "large-gather", "nccl", "devices=2,nccl=22907,compute=100", unset)
            .output,
        "done\n");
  Finished asked = runCudaRanks("fsdp=2", "large-gather", "nccl",
                                "devices=2,nccl=22907,compute=100", "NCCL_SYM_CE_THRESHOLD=1000 ");
  EXPECT_TRUE(asked.says("copy engines of NCCL 22907 hangs")) << asked.output;
  EXPECT_EQ(runCudaRanks("fsdp=2", "describe", "nccl", "devices=2,nccl=22907,compute=100",
                         "NCCL_SYM_CE_THRESHOLD=1000 ")
                .output,
            "all-gathers by kernels over 'all axes' (2 ranks: NCCL 2.29.7 to 2.31.1 may hang); "
            "set: NCCL_SYM_CE_THRESHOLD=1000\n");
}

// A feature that the environment of one rank disables is disabled on all.
TEST(Nccl, RanksAgreeOnTheirSettings) {
  for (const char *one : {"RANK1_FSDP_NCCL_WINDOW=0 ", "RANK1_FSDP_NCCL_COPY_ENGINES=0 ",
                          "RANK1_FSDP_NCCL_COPY_ENGINES=1 "}) {
    Finished job = runCudaRanks("fsdp=3", "even-steps", "nccl", "devices=3,deadlock=5", one);
    EXPECT_EQ(job.status, 0) << one << job.output;
    EXPECT_EQ(job.output, "done\n") << one;
  }
  EXPECT_EQ(runCudaRanks("fsdp=3", "describe", "nccl", "devices=3,nccl=23102",
                         "RANK1_NCCL_HOSTID=another ")
                .output,
            "all-gathers by kernels over 'all axes' (several nodes: NCCL 2.30.7 and later send "
            "through the CPU)\n");
  // One says yes, the other nothing; one yes, the other no.
  EXPECT_EQ(runCudaRanks("fsdp=2", "describe", "nccl", "devices=2,nccl=22907",
                         "RANK1_FSDP_NCCL_COPY_ENGINES=1 ")
                .output,
            "all-gathers by copy engines (FSDP_NCCL_COPY_ENGINES=1)\n");
  EXPECT_EQ(runCudaRanks("fsdp=2", "describe", "nccl", "devices=2",
                         "RANK0_FSDP_NCCL_COPY_ENGINES=1 RANK1_FSDP_NCCL_COPY_ENGINES=0 ")
                .output,
            "all-gathers by kernels (FSDP_NCCL_COPY_ENGINES=0)\n");
}

// The policy that a communicator is made with, by its own ranks and nodes.
TEST(Nccl, RequestsCopyEnginesByGroup) {
  struct Case {
    const char *mesh, *mode, *emulator, *env, *asks, *asksNot;
  };
  for (const Case &c :
       {Case{"fsdp=3", "steps", "devices=3,nccl=23007", "", "3", ""},
        Case{"fsdp=3", "steps", "devices=3,nccl=23007", "RANK1_NCCL_HOSTID=another ", "", "3"},
        Case{"fsdp=4", "transfers", "devices=4,nccl=23007", "", "", "4"}}) { // gathers nothing
    Finished job =
        runCudaRanks(c.mesh, c.mode, "nccl", c.emulator, std::string(c.env) + "NCCL_DEBUG=INFO ");
    EXPECT_EQ(job.status, 0) << job.output;
    const auto made = [&](const char *ranks, const char *policy) {
      return job.says(std::string("nranks ") + ranks + " - Init COMPLETE, CTA policy " + policy);
    };
    if (*c.asks)
      EXPECT_TRUE(made(c.asks, "zero")) << job.output;
    if (*c.asksNot) {
      EXPECT_TRUE(made(c.asksNot, "default")) << job.output;
      EXPECT_FALSE(made(c.asksNot, "zero")) << job.output;
    }
  }
}

// The arena has 40 MiB, and is on one device with those of others in Loopback.
TEST(Memory, IsComparedWithTheArenaBeforeThatIsAllocated) {
  struct Case {
    const char *how, *emulator, *says;
  };
  for (const Case &c : {Case{"nccl", "devices=2,memory=40e6",
                             "the arena of a rank, 41943040 bytes (0.0391 GiB), does not fit in "
                             "the 40000000 bytes (0.0373 GiB) that "
                             "are free of the 0.0373 GiB of GPU "},
                        Case{"nccl", "devices=2,memory=83e6,used=50e6",
                             "the arena of a rank, 41943040 bytes (0.0391 GiB), does not fit in "
                             "the 33000000 bytes (0.0307 GiB) that "
                             "are free of the 0.0773 GiB of GPU "},
                        Case{"loopback", "devices=1,memory=83e6",
                             "the arenas of 2 ranks, 83886080 bytes (0.0781 GiB), do not fit in "
                             "the 83000000 bytes (0.0773 GiB) that "
                             "are free of the 0.0773 GiB of GPU 0"}}) {
    Finished job = runCudaRanks("fsdp=2", "steps", c.how, c.emulator);
    EXPECT_EQ(job.status, 1) << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_TRUE(job.says(c.says)) << job.output;
    EXPECT_TRUE(job.says("; end other programs on the GPU (nvidia-smi lists them), or compile with "
                         "more ranks, a smaller "
                         "batch or --remat\n"))
        << job.output;
  }
}

// What a late rank finds free has the arenas of the others in it.
TEST(Memory, IsComparedBeforeAnyRankHasAllocated) {
  Finished job = runCudaRanks("fsdp=2", "steps", "loopback", "devices=1,memory=90e6,deferred");
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST(Memory, OfLibrariesIsMeasured) {
  Finished job = runCudaRanks("fsdp=2", "even-memory", "nccl", "devices=2");
  EXPECT_EQ(job.output, "done\nlibraries: 300 MiB\n");
  // A communicator more than there is memory for.
  Finished none = runCudaRanks("fsdp=2", "even-memory", "nccl", "devices=2,memory=300e6");
  EXPECT_EQ(none.status, 1) << none.output;
  EXPECT_TRUE(none.says("a communicator takes 314572800 bytes of device ")) << none.output;
}

TEST(Nccl, ReportsHowItGathers) {
  EXPECT_EQ(runCudaRanks("fsdp=3", "describe", "nccl", "devices=3").output,
            "all-gathers by copy engines\n");
  EXPECT_EQ(
      runCudaRanks("fsdp=2", "describe", "nccl", "devices=2,nccl=22907", "NCCL_NVLS_ENABLE=1 ")
          .output,
      "all-gathers by kernels over 'all axes' (2 ranks: NCCL 2.29.7 to 2.31.1 may hang); set: "
      "NCCL_NVLS_ENABLE=1\n");
}

// Nothing ends a stream's wait in a gather of copy engines, and ncclCommAbort would wait for it;
// NCCL_CTA_POLICY has them where the program asks for none.
TEST(Nccl, EndsWhereAStreamWaitsForCopyEngines) {
  for (const char *emulator : {"devices=3,deadlock=100", "devices=3,deadlock=100,deferred,seed=3"})
    for (const char *env : {"", "FSDP_NCCL_COPY_ENGINES=0 NCCL_CTA_POLICY=2 "}) {
      Finished job = runCudaRanks("fsdp=3", "even-throw", "nccl", emulator, env);
      EXPECT_EQ(job.status, 1) << job.output;
      EXPECT_EQ(job.output, "error: rank 1: the planted fault\n");
      EXPECT_LT(job.seconds, kSoon);
    }
}

// One rank cannot register the arena; the others are in the call that waits for it.
TEST(Nccl, ContinuesWithoutAWindowOnOneRank) {
  for (const char *rank : {"0", "1"}) {
    Finished job = runCudaRanks("fsdp=3", "even-steps", "nccl",
                                std::string("devices=3,deadlock=100,window=fail:") + rank);
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_EQ(job.output, std::string("note: rank ") + rank +
                              ": NCCL does not register the arena as a symmetric window of 'all "
                              "axes' (unhandled system "
                              "error: the memory of another rank cannot be mapped); collectives of "
                              "all ranks go through "
                              "NCCL's own buffers, which is slower; FSDP_NCCL_WINDOW=0 does not "
                              "ask for windows\ndone\n");
    EXPECT_LT(job.seconds, kSoon);
  }
  Finished without = runCudaRanks("fsdp=3", "even-steps", "nccl",
                                  "devices=3,deadlock=100,window=fail:1", "FSDP_NCCL_WINDOW=0 ");
  EXPECT_EQ(without.output, "done\n");
}

TEST(Nccl, RefusesUnknownSettings) {
  for (const char *name : {"FSDP_NCCL_COPY_ENGINES", "FSDP_NCCL_WINDOW"}) {
    Finished job =
        runCudaRanks("fsdp=2", "steps", "nccl", "devices=2", std::string(name) + "=yes ");
    EXPECT_EQ(job.status, 2) << job.output;
    EXPECT_TRUE(
        job.says(std::string("environment variable '") + name + "' got 'yes', expected 0 or 1\n"))
        << job.output;
  }
}

// Refused where one environment asks for both; of ranks that differ, the one without windows has
// its way, which the description says.
TEST(Nccl, HasNoCopyEnginesWithoutWindows) {
  Finished both = runCudaRanks("fsdp=2", "steps", "nccl", "devices=2",
                               "FSDP_NCCL_WINDOW=0 FSDP_NCCL_COPY_ENGINES=1 ");
  EXPECT_EQ(both.status, 2) << both.output;
  EXPECT_TRUE(both.says("environment variable 'FSDP_NCCL_COPY_ENGINES' got '1' and "
                        "'FSDP_NCCL_WINDOW' got '0', expected one of them only: copy engines "
                        "gather between windows\n"))
      << both.output;
  EXPECT_EQ(runCudaRanks("fsdp=3", "describe", "nccl", "devices=3",
                         "FSDP_NCCL_COPY_ENGINES=1 RANK1_FSDP_NCCL_COPY_ENGINES= "
                         "RANK1_FSDP_NCCL_WINDOW=0 ")
                .output,
            "all-gathers by kernels (FSDP_NCCL_WINDOW=0 of a rank, in spite of "
            "FSDP_NCCL_COPY_ENGINES=1)\n");
}

TEST(Nccl, DoesNotWaitForeverToStart) {
  Finished job = runCudaRanks("fsdp=2", "join", "nccl", "devices=2", "FSDP_TIMEOUT=3 ");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("timed out after 3 s waiting for NCCL to connect all ranks (--timeout "
                       "sets the timeout in seconds; NCCL_DEBUG=INFO logs what NCCL does)\n"))
      << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

TEST(Nccl, HearsOfItsAsynchronousErrors) {
  Finished job = runCudaRanks("fsdp=2", "remote", "nccl", "devices=2");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("NCCL reports '")) << job.output;
  EXPECT_TRUE(job.says("a rank has failed, or the connection to it is lost\n")) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

} // namespace
