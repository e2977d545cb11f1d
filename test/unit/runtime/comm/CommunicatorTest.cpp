// The conformance suite over both backends, and that a job's collectives work through streams.
#include "test/Extent.h"
#include "test/unit/runtime/job/JobProcess.h"

#include <gtest/gtest.h>

namespace {

struct Case {
  const char *mesh;
  int ranks;
};
void PrintTo(const Case &c, std::ostream *out) { *out << c.mesh; }

class Conformance : public testing::TestWithParam<Case> {};

// Sizes that are powers of two and that are not; groups over every list of axes of 2-D and 3-D
// meshes; ranks in another order than that of the mesh.
INSTANTIATE_TEST_SUITE_P(
    Meshes, Conformance,
    testing::ValuesIn(fsdp::test::casesOf<Case>(
        {{"fsdp=1", 1}, {"fsdp=3", 3}, {"data=2,fsdp=2@3.1.0.2", 4}},
        {{"fsdp=2", 2}, {"fsdp=4", 4}, {"fsdp=7", 7}, {"data=2,fsdp=3", 6}, {"a=2,b=1,c=2", 4}})));

void expectConformance(const Finished &job) {
  EXPECT_EQ(job.status, 0) << job.output;
  std::size_t at = job.output.find("compared ");
  ASSERT_NE(at, std::string::npos) << job.output;
  EXPECT_GT(std::atol(job.output.c_str() + at + 9), 100'000) << job.output;
}

TEST_P(Conformance, SharedMemory) {
  expectConformance(runRanksProgram(GetParam().mesh, "conformance"));
}

TEST_P(Conformance, Mpi) {
  if (!*MPIEXEC)
    GTEST_SKIP() << "built without MPI";
  expectConformance(runUnderMpi(GetParam().ranks, GetParam().mesh, "conformance", "mpi"));
}

TEST_P(Conformance, ThreadsOfOneProcess) {
  expectConformance(runRanksProgram(GetParam().mesh, "conformance threads"));
}

TEST(Steps, RunOnThreadsOfOneProcess) {
  Finished job = runRanksProgram("fsdp=3", "steps threads");
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_EQ(job.output, "done\n");
  job = runRanksProgram("fsdp=3", "throw threads");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.output, "error: rank 1: the planted fault\n");
  job = runCommand("env RANK=0 WORLD_SIZE=3 " RANKS_PROGRAM " fsdp=3 steps threads");
  EXPECT_EQ(job.status, 2) << job.output;
  EXPECT_EQ(job.output,
            "error: --communicator=loopback runs all ranks in one process, but the launcher "
            "started 3: start the program alone, or use nccl\n");
}

TEST(Steps, RunOnStreamsOverBothBackends) {
  for (const char *mesh : {"fsdp=1", "fsdp=2", "fsdp=7", "data=2,fsdp=2"}) {
    Finished job = runRanksProgram(mesh, "steps");
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_EQ(job.output, "done\n");
  }
  if (!*MPIEXEC)
    GTEST_SKIP() << "built without MPI";
  for (const char *transport : {"auto", "shm", "mpi"}) {
    Finished job = runUnderMpi(3, "fsdp=3", "steps", transport);
    EXPECT_EQ(job.status, 0) << transport << job.output;
    EXPECT_TRUE(job.says("done\n")) << transport << job.output;
  }
}

// The gather of the next unit ends while this unit still computes.
TEST(Steps, GathersOverlapCompute) {
  Finished job = runRanksProgram("fsdp=2", "overlap");
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST(Steps, CollectivesTakeTheTimeOfALimitedLink) {
  Finished job = runCommand("env FSDP_LINK_BANDWIDTH=1000000 " RANKS_PROGRAM " fsdp=2 link");
  EXPECT_EQ(job.status, 0) << job.output;
  // The check sees a link that is faster: by whichever collective the machine's load leaves fast.
  job = runRanksProgram("fsdp=2", "link");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says(" took ")) << job.output;
  job = runCommand("env FSDP_LINK_BANDWIDTH=1e5 " RANKS_PROGRAM " fsdp=2 steps");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("environment variable 'FSDP_LINK_BANDWIDTH' got '1e5', expected bytes a "
                       "second, at least 1000000"))
      << job.output;
}

TEST(Steps, NothingAllocatesAfterTheFirst) {
  Finished job = runRanksProgram("fsdp=3", "allocations");
  EXPECT_EQ(job.status, 0) << job.output;
  // The count sees a kernel that allocates.
  job = runRanksProgram("fsdp=3", "allocate");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("error: rank 1: 1 allocations after the first step")) << job.output;
}

} // namespace
