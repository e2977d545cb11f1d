// A rank that fails, dies, hangs, leaves or does something else than the others ends every rank
// within seconds, and the cause is named once.
#include "test/unit/runtime/job/JobProcess.h"

#include <gtest/gtest.h>

namespace {

// Who waits for those that are not there does so for this long.
constexpr const char *kTimeout = "FSDP_TIMEOUT=3 ";

struct Fault {
  const char *mode;
  int status;
  const char *cause;
  const char *other = nullptr; ///< what may be found in its place
  const char *env = FSDP_LONG_TIMEOUT;
};
void PrintTo(const Fault &f, std::ostream *out) { *out << f.mode; }

class Faults : public testing::TestWithParam<Fault> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, Faults,
    testing::Values(
        Fault{"throw", 1, "error: rank 1: the planted fault\n"},
        Fault{"kernel", 1, "error: rank 1, 'faulty kernel': the planted fault of a kernel\n"},
        Fault{"sigkill", 1, "error: rank 1: was killed by signal 9 (Killed)"},
        Fault{"segv", 1, "error: rank 1: was killed by signal 11 (Segmentation fault)\n"},
        Fault{"exit", 3, "error: rank 1: exited with status 3 before the end of the job\n"},
        // On a busy machine the collective may be late before its heartbeat.
        Fault{"stop", 1, "error: rank 1: not responding: no heartbeat for",
              " over 'all axes', waiting for rank 1", kTimeout},
        Fault{"spin", 1, " over 'all axes', waiting for rank 1", nullptr, kTimeout},
        Fault{"leave", 1, "for rank 1, which has ended already\n"},
        Fault{"kind", 1, "collectives over 'all axes' do not match: "},
        Fault{"count", 1, "'all_gather of f32 1x3336x1 of 10000'"},
        Fault{"group", 1, "1x3336x1 of 10007, first of a group of 2 with hash "},
        Fault{"sizes", 1,
              "rank 1 of the group called 'receive of f32 x5 from rank 0 of the group (message "
              "1)', rank 0 called "
              "'send of f32 x4 "
              "to rank 1 of the group (message 1)'"},
        Fault{
            "crossing", 1,
            "in a receive from this rank itself: neither continues; let one of them send first, or "
            "use two "
            "streams\n"},
        Fault{"unsent", 1,
              "'receive of f32 x4 from rank 0 of the group (message 1)', collective 5 over 'all "
              "axes'",
              " over 'all axes', waiting for rank 1", kTimeout}));

TEST_P(Faults, EndEveryRank) {
  Finished job = runRanksProgram("fsdp=3", GetParam().mode, GetParam().env);
  EXPECT_EQ(job.status, GetParam().status) << job.output;
  EXPECT_TRUE(job.says(GetParam().cause) || (GetParam().other && job.says(GetParam().other)))
      << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

// A job that is stopped as a whole for longer than its timeout, while ranks wait for one another,
// resumes on SIGCONT.
TEST(Suspended, JobsGoOn) {
  const std::string env = "FSDP_TIMEOUT=2 ";
  Finished job = runRanksProgram("fsdp=3", "suspend", env);
  EXPECT_EQ(job.output, "done\n") << "forked";
  job = runCommand("sh -c 'for r in 0 1 2; do RANK=$r WORLD_SIZE=3 " + env +
                   RANKS_PROGRAM " fsdp=3 suspend & done; wait'");
  EXPECT_EQ(job.output, "done\n") << "launched";
  TcpRun run{3, 1};
  run.env = env;
  EXPECT_EQ(run.run("fsdp=3", "suspend").output, "done\n") << "over TCP";
}

// Under a launcher the ranks monitor each other. The launcher also detects a dead rank and reports
// it first, with its own message.
struct LaunchedFault {
  const char *mode, *transport, *cause;
  const char *other = nullptr; ///< what may be found in its place
  const char *env = FSDP_LONG_TIMEOUT;
};
void PrintTo(const LaunchedFault &f, std::ostream *out) { *out << f.mode << " " << f.transport; }

class FaultsUnderMpirun : public testing::TestWithParam<LaunchedFault> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, FaultsUnderMpirun,
    testing::Values(
        LaunchedFault{"throw", "shm", "error: rank 1: the planted fault\n"},
        LaunchedFault{"kernel", "mpi",
                      "error: rank 1, 'faulty kernel': the planted fault of a kernel\n"},
        LaunchedFault{"sigkill", "shm", "signal 9"}, LaunchedFault{"sigkill", "mpi", "signal 9"},
        LaunchedFault{"stop", "shm", "error: rank 1: not responding: no heartbeat for",
                      "', waiting for rank 1", kTimeout},
        LaunchedFault{"stop", "mpi", "', waiting for rank 1; --timeout", nullptr, kTimeout},
        LaunchedFault{"leave", "mpi", "', waiting for rank 1; --timeout", nullptr, kTimeout},
        LaunchedFault{"kind", "mpi", "collectives over 'all axes' do not match: "},
        LaunchedFault{"crossing", "mpi", "timed out after 3 s in 'receive of f32 x4 from ", nullptr,
                      kTimeout}));

TEST_P(FaultsUnderMpirun, EndEveryRank) {
  if (!*MPIEXEC)
    GTEST_SKIP() << "built without MPI";
  Finished job = runUnderMpi(3, "fsdp=3", GetParam().mode, GetParam().transport, GetParam().env);
  EXPECT_NE(job.status, 0) << job.output;
  EXPECT_TRUE(job.says(GetParam().cause) || (GetParam().other && job.says(GetParam().other)))
      << job.output;
  EXPECT_LE(job.errors(), 1) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

TEST(Bootstrap, RefusesAnotherNumberOfRanks) {
  Finished job = runRanksProgram("fsdp=4", "steps", "RANK=0 WORLD_SIZE=3 ");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says(
      "error: the mesh 'fsdp=4' has 4 ranks, but the launcher started 3: start 4, or compile "
      "the program for a mesh of 3\n"))
      << job.output;
}

TEST(Bootstrap, EndsWhenARankCannotStart) {
  Finished job = runRanksProgram("fsdp=3", "steps", "FAIL_FORK=1 ");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(
      job.says("error: cannot start the process of rank 1: Resource temporarily unavailable\n"))
      << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

// Ranks that are threads: those that have started end with the one that has not.
TEST(Bootstrap, EndsWhenAThreadCannotStart) {
  Finished job =
      runRanksProgram("fsdp=3", "steps threads",
                      "LD_PRELOAD=" FAULTY_CALLS " 'FSDP_TEST_FAULTS=* pthread_create 2 EAGAIN' ");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_TRUE(job.says("error: ") && job.says("cannot start the thread of ") &&
              job.says(": Resource temporarily unavailable: "))
      << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

// A launcher of another kind gave the number; MPI itself knows of one process.
TEST(Bootstrap, RefusesAnotherWorldThanMpis) {
  if (!*MPIEXEC)
    GTEST_SKIP() << "built without MPI";
  Finished job = runCommand("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 RANK=0 "
                            "WORLD_SIZE=2 " RANKS_PROGRAM " fsdp=2 steps mpi");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(
      job.says("error: the mesh 'fsdp=2' has 2 ranks, but MPI started 1: start 2, or compile"))
      << job.output;
}

TEST(Bootstrap, ReportsMissingMpi) {
  Finished job =
      runCommand("env RANK=0 WORLD_SIZE=2 " RANKS_PROGRAM "-without-mpi fsdp=2 steps mpi");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(
      job.says("error: --communicator=mpi: this program was built without MPI; install it "
               "(libopenmpi-dev) and build again, or set MASTER_ADDR to the address of rank "
               "0's machine to connect over TCP\n"))
      << job.output;
}

TEST(Bootstrap, RefusesSharedMemoryBetweenMachines) {
  Finished job = runRanksProgram("fsdp=2", "steps shm", "RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 ");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("error: --communicator=shm connects ranks on one machine, but these are on "
                       "several: use auto, tcp or mpi\n"))
      << job.output;
}

// Meshes of the same size, but another number of communicators.
TEST(Bootstrap, RefusesRanksOfDifferentPrograms) {
  Finished job = runCommand("sh -c 'RANK=0 WORLD_SIZE=2 FSDP_TIMEOUT=30 " RANKS_PROGRAM
                            " fsdp=2 steps & RANK=1 WORLD_SIZE=2 FSDP_TIMEOUT=30 " RANKS_PROGRAM
                            " a=1,fsdp=2 steps; wait'");
  EXPECT_TRUE(job.says("error: rank 1 was started with mesh a=1,fsdp=2 and ")) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
}

TEST(Bootstrap, RefusesMpiWithoutALauncher) {
  Finished job = runRanksProgram("fsdp=2", "steps mpi");
  EXPECT_EQ(job.status, 2);
  EXPECT_TRUE(job.says("error: --communicator=mpi needs a launcher: start with 'mpirun -n 2'"))
      << job.output;
}

TEST(Bootstrap, RefusesTcpWithoutALauncher) {
  Finished job = runRanksProgram("fsdp=2", "steps tcp");
  EXPECT_EQ(job.status, 2);
  EXPECT_TRUE(job.says("error: --communicator=tcp needs a launcher, such as 'torchrun "
                       "--nproc-per-node=2 --no-python', or its variables; leave the option out to "
                       "fork the ranks on this machine\n"))
      << job.output;
}

TEST(Bootstrap, RefusesAnUnknownCommunicator) {
  Finished job = runRanksProgram("fsdp=2", "steps gloo");
  EXPECT_EQ(job.status, 2);
  EXPECT_TRUE(
      job.says("error: option '--communicator' got 'gloo', expected auto, shm, tcp or mpi\n"))
      << job.output;
}

TEST(Bootstrap, RefusesASenselessTimeout) {
  Finished job = runRanksProgram("fsdp=2", "steps", "FSDP_TIMEOUT=soon ");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("environment variable 'FSDP_TIMEOUT' got 'soon', expected seconds above 0"))
      << job.output;
}

TEST(Bootstrap, NamesRanksThatDidNotMapTheSegment) {
  Finished job =
      runRanksProgram("fsdp=2", "steps", "RANK=0 WORLD_SIZE=2 MASTER_PORT=1 FSDP_TIMEOUT=0.5 ");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(
      job.says("timed out after 0.5 s waiting for the ranks of this machine: 1 of 2 joined"))
      << job.output;
  job = runRanksProgram("fsdp=2", "steps", "RANK=1 WORLD_SIZE=2 MASTER_PORT=2 FSDP_TIMEOUT=0.5 ");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("timed out after 0.5 s waiting for rank 0 to share its memory with rank 1"))
      << job.output;
}

// Ranks that torchrun would start: the shell is the common parent.
TEST(Bootstrap, RanksOfALauncherFindEachOther) {
  std::string start = "sh -c 'for r in 0 1 2; do RANK=$r WORLD_SIZE=3 LOCAL_RANK=$r "
                      "LOCAL_WORLD_SIZE=3 " RANKS_PROGRAM " fsdp=3 steps & done; wait'";
  Finished job = runCommand(start);
  EXPECT_EQ(job.output, "done\n");
}

} // namespace
