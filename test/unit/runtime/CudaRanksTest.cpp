// The CUDA runtime's collectives under the emulator: conformance, streams in adversarial order, and
// faults that every rank must hear of.
#include "JobProcess.h"

#include <gtest/gtest.h>

namespace {

Finished runCudaRanks(const std::string &mesh, const std::string &mode, const std::string &how,
                      const std::string &emulator, const std::string &env = "") {
  return runCommand("env FSDP_EMULATOR=" + emulator + " " + env + CUDA_RANKS_PROGRAM + " " + mesh +
                    " " + mode + " " + how);
}

struct Backend {
  const char *how, *emulator;
};
void PrintTo(const Backend &backend, std::ostream *out) {
  *out << backend.how << " " << backend.emulator;
}

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
                                         Backend{"nccl", "devices=8,deferred,seed=8"}));

TEST_P(CudaRanks, Conform) {
  for (const char *mesh : {"fsdp=3", "data=2,fsdp=2"}) {
    Finished job = run(mesh, "conformance");
    EXPECT_EQ(job.status, 0) << mesh << job.output;
    const std::size_t at = job.output.find("compared ");
    ASSERT_NE(at, std::string::npos) << mesh << job.output;
    EXPECT_GT(std::atol(job.output.c_str() + at + 9), 100'000) << job.output;
  }
}

TEST_P(CudaRanks, RunStepsOnStreams) {
  for (const char *mesh : {"fsdp=1", "fsdp=2", "fsdp=7", "data=2,fsdp=2"}) {
    Finished job = run(mesh, "steps");
    EXPECT_EQ(job.status, 0) << mesh << job.output;
    EXPECT_EQ(job.output, "done\n") << mesh;
  }
}

TEST_P(CudaRanks, HearOfARankThatThrows) {
  Finished job = run("fsdp=3", "throw");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("error: rank 1: the planted fault\n")) << job.output;
  EXPECT_LT(job.seconds, 20);
}

TEST_P(CudaRanks, NameTheCallThatFails) {
  Finished job = run("fsdp=2", "invalid");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("error: rank 1, 'wrong copy': ")) << job.output;
  EXPECT_TRUE(job.says(" at CudaRanksMain.cpp:")) << job.output;
  EXPECT_LT(job.seconds, 20);
}

TEST(Loopback, NamesTheRankThatDoesNotCome) {
  for (const char *mode : {"leave", "sleep"}) {
    Finished job = runCudaRanks("fsdp=3", mode, "loopback", "devices=1", "FSDP_TIMEOUT=1 ");
    EXPECT_EQ(job.status, 1) << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_TRUE(job.says("'gather': waited 1 s in 'all_gather of ")) << job.output;
    EXPECT_TRUE(job.says("over 'all axes' for rank 1, which did not come")) << job.output;
    EXPECT_LT(job.seconds, 20);
  }
}

TEST(Loopback, RefusesCollectivesThatDiffer) {
  Finished job = runCudaRanks("fsdp=2", "kind", "loopback", "devices=1");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("'scatter': collectives over 'all axes' do not match: ")) << job.output;
}

TEST(Nccl, NamesTheCollectiveThatHangs) {
  for (const char *mode : {"leave", "sleep"}) {
    Finished job =
        runCudaRanks("fsdp=3", mode, "nccl", "devices=3,deadlock=100", "FSDP_TIMEOUT=1 ");
    EXPECT_EQ(job.status, 1) << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_TRUE(job.says("'gather': waited 1 s in a collective over 'all axes'")) << job.output;
    EXPECT_LT(job.seconds, 20);
  }
}

} // namespace
