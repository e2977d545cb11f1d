#include "runtime/job/Launcher.h"
#include "base/Error.h"

#include <gtest/gtest.h>
#include <map>

using namespace base;
using namespace fsdp::rt;

namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> detect(const Variables &variables) {
  return detectLauncher([&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expectLaunched(const Variables &variables, const char *by, int rank, int size, int localRank,
                    int localSize) {
  std::optional<LaunchEnvironment> found = detect(variables);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->by, by);
  EXPECT_EQ(found->rank, rank);
  EXPECT_EQ(found->size, size);
  EXPECT_EQ(found->localRank, localRank);
  EXPECT_EQ(found->localSize, localSize);
  EXPECT_EQ(found->oneMachine(), localSize == size);
  EXPECT_FALSE(found->key.empty());
}

TEST(Launcher, Torchrun) {
  expectLaunched({{"RANK", "5"},
                  {"WORLD_SIZE", "8"},
                  {"LOCAL_RANK", "1"},
                  {"LOCAL_WORLD_SIZE", "4"},
                  {"TORCHELASTIC_RUN_ID", "a"}},
                 "torchrun", 5, 8, 1, 4);
}

TEST(Launcher, TorchrunsMeetingPlace) {
  Variables variables = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}};
  const auto expectPort = [&](int port, const std::string &from) {
    std::optional<LaunchEnvironment> found = detect(variables);
    EXPECT_EQ(found->address, "node0");
    EXPECT_EQ(found->port, port);
    EXPECT_EQ(found->portFrom, from);
  };
  expectPort(29500, "the default port, as MASTER_PORT is not set");
  variables["MASTER_PORT"] = "4000";
  expectPort(4000, "MASTER_PORT");
  // The agent's store listens there.
  for (const char *yes : {"True", "true", "1"}) {
    variables["TORCHELASTIC_USE_AGENT_STORE"] = yes;
    expectPort(4001, "the port next to MASTER_PORT 4000, which torchrun's store uses");
  }
  variables["MASTER_PORT"] = "65535";
  expectPort(65534, "the port next to MASTER_PORT 65535, which torchrun's store uses");
  variables["FSDP_PORT"] = "77";
  expectPort(77, "FSDP_PORT");
  for (const char *port : {"0", "65536", "http"}) {
    variables["FSDP_PORT"] = port;
    EXPECT_THROW(detect(variables), Error) << port;
  }
}

// Variables that somebody set by hand need not say how many ranks are on a machine.
TEST(Launcher, RanksAtAMeetingPlaceMayBeAnywhere) {
  Variables variables = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_TRUE(detect(variables)->oneMachine());
  EXPECT_EQ(detect(variables)->localRank, 1);
  variables["MASTER_ADDR"] = "node0";
  EXPECT_FALSE(detect(variables)->oneMachine());
  EXPECT_EQ(detect(variables)->localRank, -1);
  variables["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_TRUE(detect(variables)->oneMachine());
}

TEST(Launcher, OpenMpi) {
  expectLaunched({{"OMPI_COMM_WORLD_RANK", "2"},
                  {"OMPI_COMM_WORLD_SIZE", "3"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                  {"PMIX_NAMESPACE", "123"}},
                 "Open MPI", 2, 3, 2, 3);
}

TEST(Launcher, Pmi) {
  expectLaunched({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "PMI", 1, 2, 1, 2);
  expectLaunched(
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
      "PMI", 3, 4, 1, 2);
}

TEST(Launcher, SlurmOnlyInsideAStep) {
  Variables batch = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}};
  EXPECT_FALSE(detect(batch));
  batch["SLURM_STEP_ID"] = "0";
  batch["SLURM_PROCID"] = "3";
  batch["SLURM_LOCALID"] = "3";
  expectLaunched(batch, "Slurm", 3, 4, 3, 4);
  batch["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_FALSE(detect(batch)->oneMachine());
  EXPECT_EQ(detect(batch)->localRank, 3);
  EXPECT_EQ(detect(batch)->address, "");
  batch["MASTER_ADDR"] = "10.0.0.1";
  batch["MASTER_PORT"] = "5000";
  EXPECT_EQ(detect(batch)->address, "10.0.0.1");
  EXPECT_EQ(detect(batch)->port, 5000);
}

TEST(Launcher, FirstInTheOrderWins) {
  expectLaunched({{"RANK", "0"},
                  {"WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "3"},
                  {"PMI_RANK", "1"},
                  {"PMI_SIZE", "4"}},
                 "the launcher", 0, 2, 0, 2);
}

TEST(Launcher, AloneWithoutVariables) {
  EXPECT_FALSE(detect({}));
  EXPECT_FALSE(detect({{"RANK", "0"}})) << "one variable of a pair is somebody else's";
}

TEST(Launcher, SeveralMachinesNeedALauncher) {
  for (const char *nodes : {"2", "1:2", "two", "0"})
    try {
      detect({{"NNODES", nodes}, {"NODE_RANK", "0"}, {"MASTER_ADDR", "node0"}});
      FAIL() << nodes;
    } catch (const Error &error) {
      EXPECT_EQ(error.what(),
                std::string("NNODES is '") + nodes +
                    "', but no launcher has started this process, which alone runs on one machine: "
                    "start it with torchrun, mpirun or srun on the machines of the job, or unset "
                    "NNODES to run on this machine only");
    }
  EXPECT_FALSE(detect({{"NNODES", "1"}}));
  EXPECT_FALSE(detect({{"NNODES", ""}}));
  // Scripts that start torchrun --nnodes=$NNODES may export it.
  EXPECT_TRUE(detect({{"NNODES", "2"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}}));
  EXPECT_TRUE(
      detect({{"NNODES", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
}

TEST(Launcher, RefusesNoNumber) {
  for (const char *rank : {"two", "2", "-1", "1x"})
    try {
      detect({{"RANK", rank}, {"WORLD_SIZE", "2"}});
      FAIL() << rank;
    } catch (const Error &error) {
      EXPECT_EQ(error.what(), std::string("launcher variable 'RANK' got '") + rank +
                                  "', expected a number from 0 to 1");
    }
}

} // namespace
