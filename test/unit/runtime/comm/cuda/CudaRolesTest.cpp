// Ranks that run different programs on the CUDA runtime's collectives, under the emulator.
#include "test/unit/runtime/comm/cuda/CudaRanksJob.h"

namespace {

// Communicators of one role have windows, those of both have none: their arenas differ in size.
TEST(CudaRoles, SetUpTheirCommunicatorsTogether) {
  for (const char *mesh : {"pipeline=2,fsdp=2", "pipeline=2,fsdp=3", "pipeline=2,fsdp=2@3.1.2.0"})
    for (const Backend &backend :
         {Backend{"loopback", "devices=1"}, Backend{"loopback", "devices=1,deferred,seed=7"},
          Backend{"nccl", "devices=6,leaks,deferred,seed=8"},
          Backend{"nccl", "devices=6,leaks,deferred,seed=9,queues=8"}}) {
      Finished job = runCudaRanks(mesh, "roles", backend.how, backend.emulator);
      EXPECT_EQ(job.status, 0) << mesh << " " << testing::PrintToString(backend) << job.output;
      EXPECT_EQ(job.output, "") << mesh << " " << testing::PrintToString(backend);
    }
}

// The communicator that gathers has as many ranks as it has in one role; no other gathers.
TEST(CudaRoles, RequestCopyEnginesWhereTheyGather) {
  Finished job = runCudaRanks("pipeline=2,fsdp=3", "roles-describe", "nccl",
                              "devices=6,deferred,seed=1", "NCCL_DEBUG=INFO ");
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_TRUE(job.says("all-gathers by copy engines\n")) << job.output;
  EXPECT_TRUE(job.says("nranks 3 - Init COMPLETE, CTA policy zero")) << job.output;
  EXPECT_FALSE(job.says("nranks 2 - Init COMPLETE, CTA policy zero")) << job.output;
  EXPECT_FALSE(job.says("ncclCommSplit rank 0 nranks 6")) << job.output;
}

// With NCCL_LAUNCH_ORDER_IMPLICIT what is sent would stand behind a receive that waits.
TEST(CudaRoles, SendBehindAReceiveThatWaits) {
  for (const char *seed : {"1", "2", "3"}) {
    Finished job = runCudaRanks("pipeline=2,fsdp=2", "roles-behind", "nccl",
                                std::string("devices=4,leaks,deferred,seed=") + seed,
                                "NCCL_LAUNCH_ORDER_IMPLICIT=1 ");
    EXPECT_EQ(job.status, 0) << job.output;
  }
}

TEST(CudaRoles, RefuseCollectivesThatTheirTableDoesNotList) {
  Finished job =
      runCudaRanks("pipeline=2,fsdp=2", "roles-unlisted", "nccl", "devices=4,deferred,seed=1");
  expectOneError(job, "communicator 'fsdp gather' has a collective, expected none: the tables of "
                      "this program do not list it");
}

TEST(CudaRoles, ContinueWithoutAWindowOnOneRank) {
  for (const char *rank : {"0", "1"}) {
    Finished job = runCudaRanks("pipeline=2,fsdp=2", "roles", "nccl",
                                std::string("devices=4,deferred,seed=2,window=fail:") + rank);
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_TRUE(job.says(std::string("note: rank ") + rank +
                         ": NCCL does not register the arena as a symmetric window of 'fsdp "
                         "gather'"))
        << job.output;
  }
}

} // namespace
