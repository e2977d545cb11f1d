#include "runtime/Launcher.h"
#include "runtime/Error.h"

#include <gtest/gtest.h>
#include <map>

using namespace fsdp::rt;

namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launched> detect(const Variables &variables) {
  return detectLauncher([&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expectLaunched(const Variables &variables, const char *by, int rank, int size, int localRank,
                    int localSize) {
  std::optional<Launched> found = detect(variables);
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
  expectLaunched(
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}},
      "torchrun", 5, 8, 1, 4);
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
}

TEST(Launcher, FirstInTheOrderWins) {
  expectLaunched({{"RANK", "0"},
                  {"WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "3"},
                  {"PMI_RANK", "1"},
                  {"PMI_SIZE", "4"}},
                 "torchrun", 0, 2, 0, 2);
}

TEST(Launcher, AloneWithoutVariables) {
  EXPECT_FALSE(detect({}));
  EXPECT_FALSE(detect({{"RANK", "0"}})) << "one variable of a pair is somebody else's";
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
