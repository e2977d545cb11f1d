// Segments of the CUDA runtime as graphs, under the emulator.
#include "test/unit/runtime/comm/cuda/CudaRanksJob.h"

#include <gtest/gtest.h>

namespace {

// The sums of each run, whether a host enqueues segments action by action or launches graphs of
// them: two of each rank, and two more when scratch memory has grown.
TEST(Graphs, RunAsStreamsDo) {
  for (const std::string mesh : {"fsdp=1", "fsdp=2", "data=2,fsdp=2"})
    for (const std::string order : {"", ",deferred,seed=1", ",deferred,seed=2"}) {
      const std::string emulator = "devices=4,leaks,graphs" + order;
      EXPECT_EQ(runCudaRanks(mesh, "graph", "nccl", emulator).output,
                "done\ncuda emulator: 0 graphs, launched 0 times\n");
      const int ranks = mesh == "fsdp=1" ? 1 : mesh == "fsdp=2" ? 2 : 4;
      const Finished job = runCudaRanks(mesh, "graph", "nccl", emulator, "FSDP_GRAPH=1 ");
      EXPECT_EQ(job.output, "done\ncuda emulator: " + std::to_string(4 * ranks) +
                                " graphs, launched " + std::to_string(14 * ranks) + " times\n")
          << mesh << order;
    }
}

// A run that is observed, as by a trace, is enqueued action by action, and graphs follow again.
TEST(Graphs, AreNotTraced) {
  for (const std::string order : {"", ",deferred,seed=3"}) {
    const Finished job = runCudaRanks("fsdp=2", "graph-traced", "nccl",
                                      "devices=2,leaks,graphs" + order, "FSDP_GRAPH=1 ");
    EXPECT_EQ(job.output, "done\ncuda emulator: 8 graphs, launched 12 times\n");
  }
}

TEST(Graphs, CopyBatchesThatAreNotReplaced) {
  for (const std::string seed : {"1", "2", "3", "4"}) {
    const Finished job = runCudaRanks("fsdp=1", "graph-behind", "nccl",
                                      "devices=1,leaks,deferred,seed=" + seed, "FSDP_GRAPH=1 ");
    EXPECT_EQ(job.output, "");
    EXPECT_EQ(job.status, 0);
  }
}

// A collective of a graph that a rank does not join is reported by name and number.
TEST(Graphs, NameTheCollectiveThatHangs) {
  for (const std::string order : {"", ",deferred,seed=4"}) {
    const Finished job =
        runCudaRanks("fsdp=2", "graph-leave", "nccl", "devices=2,deadlock=100" + order,
                     "FSDP_GRAPH=1 FSDP_TIMEOUT=2 ");
    expectOneError(job, "collective 10 over 'all axes': another rank did not join it");
    EXPECT_TRUE(job.says("'gather'")) << job.output;
  }
}

// Messages of a bad command line, status 2.
void expectRefused(const Finished &job, const std::string &message) {
  EXPECT_EQ(job.status, 2) << job.output;
  EXPECT_TRUE(job.says(message)) << job.output;
}

TEST(Graphs, RefuseWhatTheyCannotHold) {
  expectRefused(runCudaRanks("fsdp=1", "graph", "nccl", "devices=1", "FSDP_GRAPH=yes "),
                "environment variable 'FSDP_GRAPH' got 'yes', expected 0 or 1");
  expectRefused(runCudaRanks("fsdp=2", "graph", "loopback", "devices=1", "FSDP_GRAPH=1 "),
                "FSDP_GRAPH=1 got --communicator=loopback");
  expectRefused(runCudaRanks("pipeline=2,fsdp=1", "roles", "nccl", "devices=2", "FSDP_GRAPH=1 "),
                "run different programs, the stages of a pipeline: unset it");
  expectOneError(runCudaRanks("fsdp=2", "graph", "nccl", "devices=2", "RANK1_FSDP_GRAPH=1 "),
                 "FSDP_GRAPH=1 is set on some ranks and not on others: set it alike on all ranks");
}

TEST(Tuning, RefusesWhatItCannotChoose) {
  expectRefused(runCudaRanks("fsdp=1", "steps", "nccl", "devices=1", "FSDP_TUNE=2 "),
                "environment variable 'FSDP_TUNE' got '2', expected 0 or 1");
  expectRefused(runCudaRanks("pipeline=2,fsdp=1", "roles", "nccl", "devices=2", "FSDP_TUNE=1 "),
                "FSDP_TUNE=1 chooses algorithms for the products that all ranks have");
  expectOneError(runCudaRanks("fsdp=2", "steps", "nccl", "devices=2", "RANK1_FSDP_TUNE=1 "),
                 "FSDP_TUNE=1 is set on some ranks and not on others: set it alike on all ranks");
  expectOneError(
      runCudaRanks("fsdp=2", "steps", "nccl", "devices=2", "FSDP_TUNE=1 RANK1_CUBLASLT=13.2 "),
      "FSDP_TUNE=1 needs the same GPU and cuBLASLt on all ranks: got CPU emulating CUDA "
      "(9.0), cuBLASLt 130200, and on rank 0 CPU emulating CUDA (9.0), cuBLASLt 130100: "
      "unset it");
}

} // namespace
