// Ranks that must not train together, or go on alone: started with different options or files,
// those of two jobs, those whose launcher is gone, those that do not fit into this machine.
#include "base/Safetensors.h"
#include "test/unit/runtime/job/JobProcess.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

constexpr const char *kProgram = HANDWRITTEN_FOLDER "/linear_regression-2";
const std::string kMpi =
    "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " MPIEXEC " --oversubscribe ";

/// Files of linear_regression's, the second with other samples and weights.
class Launch : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("fsdp-launch-test-" + std::to_string(getpid()));
    fs::create_directories(folder);
    for (float first : {1.0f, 2.0f}) {
      const auto write = [&](const std::string &name, const char *one, std::int64_t rows,
                             std::int64_t columns, const char *two,
                             std::vector<std::int64_t> shape) {
        std::size_t count = 1;
        for (std::int64_t extent : shape)
          count *= static_cast<std::size_t>(extent);
        std::vector<float> values(static_cast<std::size_t>(rows * columns) + count, 0.25f);
        values[values.size() / 2] = first;
        SafetensorsWriter writer(at(name) + std::to_string(int(first)),
                                 {{one, {rows, columns}}, {two, shape}});
        writer.write(values.data(), values.size());
        writer.commit();
      };
      write("data", "x", 13, 5, "y", {13, 3});
      write("init", "kernel", 5, 3, "bias", {3});
    }
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return folder / name; }
  std::string data(int which = 1) const { return " --data " + at("data") + std::to_string(which); }
  std::string init(int which = 1) const { return " --init " + at("init") + std::to_string(which); }

  /// Rank 0 with the options `first` and rank 1 with `second`, by each way to start them by hand.
  std::vector<Finished> runByHand(const std::string &first, const std::string &second) {
    std::vector<Finished> jobs;
    const auto rank = [](int number, const std::string &variables, const std::string &options) {
      return format("env RANK=%d WORLD_SIZE=2 " FSDP_LONG_TIMEOUT "%s %s%s", number,
                    variables.c_str(), kProgram, options.c_str());
    };
    const auto both = [&](const std::string &zero, const std::string &one) {
      return runCommand("env -u SLURM_STEP_ID sh -c '" + rank(0, zero, first) + " & " +
                        rank(1, one, second) + "; status=$?; wait; exit $status'");
    };
    jobs.push_back(both("", ""));
    const std::string place = "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(freePort());
    jobs.push_back(both(place + " FSDP_MACHINE=a", place + " FSDP_MACHINE=b"));
    if (*MPIEXEC)
      for (const char *how : {" --communicator=mpi", " --communicator=shm"})
        jobs.push_back(runCommand(kMpi + "-n 1 " + kProgram + first + how + " : -n 1 " + kProgram +
                                  second + how));
    return jobs;
  }

  void expectDifference(const std::string &first, const std::string &second,
                        const std::string &says) {
    for (const Finished &job : runByHand(first, second)) {
      EXPECT_TRUE(job.says("error: " + says)) << job.output;
      EXPECT_NE(job.status, 0);
      EXPECT_EQ(job.errors(), 1) << job.output;
      EXPECT_LT(job.seconds, kSoon);
    }
  }

  fs::path folder;
};

TEST_F(Launch, RefusesRanksWithOtherOptions) {
  expectDifference(data() + " --steps 2 --lr 0.5", data() + " --steps 2 --lr 0.25 --seed 3",
                   "rank 1 was started with --seed 3 and with --lr 0.25, rank 0 with --seed 0 and "
                   "with --lr 0.5; "
                   "start all ranks with the same program, options and files\n");
}

// Training uses f32.
TEST_F(Launch, TakesRatesThatAreOneInF32) {
  for (const Finished &job :
       runByHand(data() + " --steps 2 --lr 0.1", data() + " --steps 2 --lr 0.10000000149011612")) {
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_EQ(job.errors(), 0) << job.output;
  }
}

TEST_F(Launch, RefusesRanksWithOtherFiles) {
  expectDifference(data() + " --steps 2", data(2) + " --steps 2",
                   "rank 1 was started with --data of ");
  expectDifference(data() + init() + " --steps 2", data() + init(2) + " --steps 2",
                   "rank 1 was started with --init of 2 tensors, 72 bytes, digest ");
  expectDifference(data() + init() + " --steps 2", data() + " --steps 2 --shuffle",
                   "rank 1 was started with --shuffle and without --init, rank 0 without --shuffle "
                   "and with --init of 2 tensors, 72 bytes, digest ");
}

// Of three ranks the last comes when the first two have ended otherwise.
TEST_F(Launch, InformsALateRankAtOnce) {
  const std::string place = "MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(freePort());
  for (const std::string &variables : {std::string(), place}) {
    const auto rank = [&](int number, const char *options) {
      return format("env RANK=%d WORLD_SIZE=3 " FSDP_LONG_TIMEOUT "FSDP_JOB_ID=late-%d %s %s "
                    "%s/linear_regression-3%s --steps 2%s",
                    number, static_cast<int>(getpid()), variables.c_str(),
                    variables.empty() ? "" : ("FSDP_MACHINE=" + std::to_string(number)).c_str(),
                    HANDWRITTEN_FOLDER, data().c_str(), options);
    };
    Finished job = runCommand("env -u SLURM_STEP_ID sh -c '" + rank(0, "") + " & " +
                              rank(1, " --seed 5") + " 2>&1 | sed s/^/other:/ & sleep 2; " +
                              rank(2, "") + " 2>&1 | sed s/^/other:/; wait'");
    EXPECT_TRUE(job.says("error: rank 1 was started with --seed 5, rank 0 with --seed 0"))
        << job.output;
    EXPECT_EQ(job.errors(), 1) << job.output;
    EXPECT_FALSE(job.says("other:")) << job.output;
    EXPECT_LT(job.seconds, kSoon) << job.output;
  }
}

// Under MPI the first rank with a fault reports it, and the others name that rank.
TEST_F(Launch, NamesTheRankThatReports) {
  if (!*MPIEXEC)
    GTEST_SKIP() << "built without MPI";
  const std::string rank = std::string("-n 1 ") + HANDWRITTEN_FOLDER "/linear_regression-3" +
                           data() + " --steps 2 --communicator=mpi";
  const Finished job = runCommand(kMpi + rank + " : " + rank + " --seed 5 : " + rank + " --seed 6");
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("error: rank 1 was started with --seed 5, rank 0 with --seed 0"))
      << job.output;
  EXPECT_TRUE(job.says("note: rank 0 ends, for a reason that rank 1 reports\n")) << job.output;
  EXPECT_TRUE(job.says("note: rank 2 ends: rank 2 was "
                       "started with --seed 6, rank 0 with --seed 0"))
      << job.output;
}

// Both from one shell, which is all that tells hand-started jobs apart.
TEST_F(Launch, KeepsTwoJobsApart) {
  const std::string first = "env RANK=0 WORLD_SIZE=2 FSDP_TIMEOUT=4 " RANKS_PROGRAM " fsdp=2 steps";
  Finished job = runCommand("sh -c '" + first + " & sleep 0.7; " + first + "; wait'");
  EXPECT_TRUE(job.says("another job of this name is starting now (its rank 0 is process "))
      << job.output;
}

TEST_F(Launch, EndsWithAKilledLauncher) {
  if (!*MPIEXEC)
    GTEST_SKIP() << "built without MPI";
  // A shell between mpirun and a rank, and none; each with the way to talk.
  for (const std::string words : {"", "sh -c \"\\\"\\$@\\\"; exit\" sh "})
    for (const char *how : {"shm", "mpi"}) {
      const std::string ready = at("ready");
      fs::remove(ready);
      Finished job = runCommand(
          "env READY=" + ready + " sh -c '" + kMpi + "-n 2 " + words +
          RANKS_PROGRAM " fsdp=2 spin " + how +
          " >/dev/null 2>&1 & launcher=$!; children=/proc/$launcher/task/$launcher/children; "
          "for i in $(seq 1000); do [ -e " +
          ready +
          " ] && break; sleep 0.1; done; ranks=$(cat $children); "
          "for r in $ranks; do ranks=\"$ranks $(cat /proc/$r/task/$r/children)\"; done; "
          "kill -9 $launcher; "
          "for i in $(seq 300); do left=; "
          "for r in $ranks; do grep -qs \"State:.[RSDT]\" /proc/$r/status && left=\"$left $r\"; "
          "done; "
          "[ \"$left\" ] || break; sleep 0.1; done; "
          "for r in $left; do echo left; kill -9 $r; done; echo looked at $ranks'");
      EXPECT_TRUE(job.says("looked at ")) << job.output;
      EXPECT_FALSE(job.says("left")) << how << " " << words << job.output;
    }
}

// A shell in the place of mpirun, and of torchrun's agent.
TEST_F(Launch, ReportsALostLauncher) {
  for (const std::string variables :
       {"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK", "WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x RANK"}) {
    const std::string ready = at("ready");
    fs::remove(ready);
    Finished job =
        runCommand("env READY=" + ready + " sh -c 'sh -c \"for r in 0 1; do env " + variables +
                   "=\\$r " RANKS_PROGRAM
                   " fsdp=2 spin shm & done; wait\" & launcher=$!; for i in $(seq 1000); do [ -e " +
                   ready +
                   " ] && break; sleep 0.1; done; "
                   "kill -9 $launcher; echo killed $launcher; sleep 1'");
    EXPECT_EQ(job.errors(), 1) << job.output;
    const std::size_t at = job.output.find("killed ");
    ASSERT_NE(at, std::string::npos) << job.output;
    EXPECT_TRUE(
        job.says("error: the launcher 'sh' (process " +
                 std::to_string(std::atol(job.output.c_str() + at + 7)) +
                 ") has exited: it was killed, or ended before its ranks; its ranks end too\n"))
        << job.output;
    EXPECT_LT(job.seconds, kSoon);
  }
}

TEST_F(Launch, RefusesArenasLargerThanTheMachine) {
  Finished job = runRanksProgram("fsdp=2", "steps", "ARENA_GIB=100000 ");
  EXPECT_TRUE(
      job.says("error: the arenas of 2 rank(s) on this machine take 200000.00 GiB (100000.00 "
               "GiB each), but "))
      << job.output;
}

TEST_F(Launch, RefusesTheNetworkWithoutAToken) {
  Finished job =
      runCommand("env RANK=1 WORLD_SIZE=2 MASTER_ADDR=192.0.2.77 FSDP_TIMEOUT=1 " RANKS_PROGRAM
                 " fsdp=2 steps tcp");
  EXPECT_TRUE(
      job.says("error: ranks would connect over the network at '192.0.2.77' (192.0.2.77:29500), "
               "where any host could join the job: set FSDP_JOB_TOKEN to the same secret on every "
               "rank, or FSDP_JOB_TOKEN_FILE to a file of mode 0600 that holds it, or pass "
               "--trust-network if no other host can reach that address\n"))
      << job.output;
}

} // namespace
