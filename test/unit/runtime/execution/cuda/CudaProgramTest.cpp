// Programs linked to the CUDA runtime: as it is, on a machine without a usable GPU, and emulated.
#include "test/unit/runtime/job/JobProcess.h"

#include <gtest/gtest.h>

namespace {

/// `kind` is "" or "-emulated", `ranks` 1 or 4.
Finished runProgram(const std::string &kind, int ranks, const std::string &arguments,
                    const std::string &env = "") {
  return runCommand("env " + env +
                    cudaProgram("cuda-program" + kind + "-" + std::to_string(ranks)) + " " +
                    arguments);
}

TEST(CudaProgram, EndsAtOnceWhereNoGpuIsUsable) {
  if (!LINKED)
    GTEST_SKIP() << "built without CUDA";
  // No GPU of this machine is shown to it, whether there is one or not.
  for (int ranks : {1, 4})
    for (const char *how : {"", " --communicator=loopback"}) {
      Finished job =
          runProgram("", ranks, std::string("--steps=1") + how, "CUDA_VISIBLE_DEVICES= ");
      EXPECT_EQ(job.status, 3) << job.output;
      EXPECT_EQ(job.errors(), 1) << job.output;
      EXPECT_TRUE(job.says("error: no GPU is usable: CUDA driver version is insufficient") ||
                  job.says("error: no GPU is usable: no CUDA-capable device is detected"))
          << job.output;
      EXPECT_LT(job.seconds, 60); // no timeout of a job is shorter: nothing was waited for
    }
}

TEST(CudaProgram, RefusesTheCommunicatorsOfTheCpu) {
  for (const char *name : {"shm", "mpi"}) {
    Finished job = runProgram("-emulated", 4, std::string("--steps=1 --communicator=") + name);
    EXPECT_EQ(job.status, 2) << job.output;
    EXPECT_TRUE(job.says("expected auto, nccl or loopback\n")) << job.output;
  }
}

TEST(CudaProgram, RefusesToLimitTheLinksOfGpus) {
  Finished job = runProgram("-emulated", 4, "--steps=1 --communicator=loopback",
                            "FSDP_LINK_BANDWIDTH=1000000000 ");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("FSDP_LINK_BANDWIDTH limits the links of programs for CPUs only: unset it"))
      << job.output;
}

TEST(CudaProgram, RunsItsStepsThroughTheDriver) {
  Finished one = runProgram("-emulated", 1, "--steps=3");
  EXPECT_EQ(one.status, 0) << one.output;
  EXPECT_TRUE(one.says("done:  loss 0  grad_norm 0  lr 0\n")) << one.output;
  EXPECT_TRUE(one.says("arena peak 132 of 192 bytes (192 B), ")) << one.output;
  Finished four = runProgram("-emulated", 4, "--steps=3 --communicator=loopback");
  EXPECT_EQ(four.status, 0) << four.output;
  EXPECT_TRUE(four.says("nothing: 0 parameters, 4 ranks, mesh fsdp=4, ")) << four.output;
}

TEST(CudaProgram, LogsTheMemoryOfLibrariesOnce) {
  const std::string log = testing::TempDir() + "library_bytes-" + std::to_string(getpid());
  Finished job =
      runProgram("-emulated", 1, "--steps=2 --log=" + log + " && cat " + log + " && rm " + log);
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_TRUE(job.says("\"library_bytes\": ")) << job.output;
  EXPECT_EQ(job.output.find("\"library_bytes\": "), job.output.rfind("\"library_bytes\": "))
      << job.output;
  EXPECT_TRUE(job.says(", libraries ")) << job.output;
}

TEST(CudaProgram, RequestsQueuesBeforeTheFirstCall) {
  for (const char *given : {"", "CUDA_DEVICE_MAX_CONNECTIONS=8 "}) {
    Finished job =
        runProgram("-emulated", 1, "--steps=1", std::string("FSDP_EMULATOR=connections ") + given);
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_TRUE(job.says(std::string("cuda emulator: ") + (*given ? "8" : "32") + " connections\n"))
        << job.output;
  }
}

TEST(CudaDevice, WaitsForRunningWork) {
  // Whether a missing wait shows depends on the order that the seed gives.
  for (int seed = 1; seed <= 12; ++seed) {
    Finished job = runCommand("env FSDP_EMULATOR=deferred,seed=" + std::to_string(seed) + " " +
                              cudaProgram("cuda-device"));
    EXPECT_EQ(job.status, 0) << job.output;
  }
}

TEST(CudaProgram, ReportsHowManyGpusItNeeds) {
  Finished job = runProgram("-emulated", 4, "--steps=3", "FSDP_EMULATOR=devices=2 ");
  EXPECT_EQ(job.status, 3) << job.output;
  EXPECT_TRUE(job.says("error: got 2 GPU(s) on this machine, expected 4: ")) << job.output;
  // Under a launcher each rank looks for its own, or has been given one that only it sees.
  const auto launch = [](const std::string &env) {
    return runCommand("env FSDP_TIMEOUT=60 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 "
                      "MASTER_PORT=" +
                      std::to_string(freePort()) +
                      " sh -c 'for r in 0 1 2 3; do RANK=$r LOCAL_RANK=$r " + env + " " +
                      cudaProgram("cuda-program-emulated-4") + " --steps=3 & done; wait'");
  };
  job = launch("FSDP_EMULATOR=devices=2 CUDA_VISIBLE_DEVICES=4,5");
  EXPECT_TRUE(job.says("got 2 GPU(s) by CUDA_VISIBLE_DEVICES=4,5 for local rank ")) << job.output;
  EXPECT_TRUE(job.says(": one for each rank; show each process the GPUs of all ranks of its "
                       "machine, or its own one\n"))
      << job.output;
  EXPECT_LT(job.seconds, kSoon);
  job = launch("FSDP_EMULATOR=devices=1");
  EXPECT_TRUE(job.says("got 1 GPU(s)")) << job.output;
  job = launch("FSDP_EMULATOR=devices=1 CUDA_VISIBLE_DEVICES=$r");
  EXPECT_FALSE(job.says("got 1 GPU(s)")) << job.output;
  EXPECT_TRUE(job.says("ranks of several processes are not emulated")) << job.output; // by NCCL
}

TEST(CudaProgram, NamesTheArchitectureIfItHasNoKernelsForTheGpu) {
  for (int ranks : {1, 4}) {
    Finished job = runProgram("-emulated", ranks, "--steps=3 --communicator=loopback",
                              "FSDP_EMULATOR=noimage,compute=86 ");
    EXPECT_EQ(job.status, 3) << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_TRUE(job.says("this program has no kernels for GPU 0, 'CPU emulating CUDA' of compute "
                         "capability 8.6 (cudaErrorNoKernelImageForDevice): compile the model with "
                         "--cuda-arch=86, or for several GPUs as in --cuda-arch=86,90a\n"))
        << job.output;
  }
}

} // namespace
