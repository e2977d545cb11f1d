// Ranks that torchrun's variables put on several machines: they meet over TCP. Machines differ in
// FSDP_MACHINE here; check_machines.py has some that differ in more.
#include "runtime/job/ControlChannel.h"
#include "test/Extent.h"
#include "test/unit/base/TemporaryFile.h"
#include "test/unit/runtime/job/JobProcess.h"

#include <gtest/gtest.h>

namespace {

struct Case {
  const char *mesh;
  int ranks, perMachine;
  const char *transport;
};
void PrintTo(const Case &c, std::ostream *out) {
  *out << c.mesh << " " << c.perMachine << " a machine, " << c.transport;
}

class TcpConformance : public testing::TestWithParam<Case> {};

// Connections between all; and machines of several ranks, with groups inside of one, across, and
// the last machine not full.
INSTANTIATE_TEST_SUITE_P(
    Meshes, TcpConformance,
    testing::ValuesIn(fsdp::test::casesOf<Case>(
        {{"fsdp=1", 1, 1, "tcp"}, {"fsdp=3", 3, 2, "auto"}, {"data=2,fsdp=2@3.1.0.2", 4, 1, "tcp"}},
        {{"fsdp=2", 2, 2, "tcp"},
         {"fsdp=3", 3, 3, "tcp"},
         {"fsdp=7", 7, 7, "tcp"},
         {"data=2,fsdp=2", 4, 2, "auto"},
         {"data=2,fsdp=3", 6, 2, "auto"},
         {"fsdp=5", 5, 2, "auto"}})));

TEST_P(TcpConformance, Holds) {
  const Case &c = GetParam();
  Finished job =
      TcpRun{c.ranks, c.perMachine}.run(c.mesh, std::string("conformance ") + c.transport);
  EXPECT_EQ(job.status, 0) << job.output;
  const std::size_t at = job.output.find("compared ");
  ASSERT_NE(at, std::string::npos) << job.output;
  EXPECT_GT(std::atol(job.output.c_str() + at + 9), 100'000) << job.output;
}

TEST(Tcp, RunsStepsOnStreams) {
  for (int perMachine : {1, 2, 3}) {
    Finished job = TcpRun{4, perMachine}.run("data=2,fsdp=2", "steps");
    EXPECT_EQ(job.status, 0) << job.output;
    EXPECT_EQ(job.output, "done\n");
  }
  Finished job = TcpRun{3, 1}.run("fsdp=3", "allocations");
  EXPECT_EQ(job.status, 0) << job.output;
}

// The index of a rank on its machine, which is that of its GPU: from the launcher, or as they met.
TEST(Tcp, CountsTheRanksOfAMachine) {
  TcpRun run{4, 2};
  for (const char *told : {"", "env -u LOCAL_RANK -u LOCAL_WORLD_SIZE"}) {
    run.own.assign(4, told);
    Finished job = run.run("fsdp=4", "where");
    EXPECT_EQ(job.status, 0) << job.output;
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_TRUE(job.says(base::format("rank %d is %d here\n", rank, rank % 2))) << job.output;
  }
  // A launcher may count otherwise than memory is shared.
  run.own = {"", "", "env LOCAL_RANK=3", ""};
  EXPECT_TRUE(run.run("fsdp=4", "where").says("rank 2 is 3 here\n"));
}

// torchrun's agent has MASTER_PORT: the next one is taken.
TEST(Tcp, LeavesTorchrunsPortAlone) {
  TcpRun run{2, 1};
  const fsdp::rt::Socket store = fsdp::rt::listenOn(run.port);
  run.env = "TORCHELASTIC_USE_AGENT_STORE=True ";
  Finished job = run.run("fsdp=2", "steps");
  EXPECT_EQ(job.output, "done\n");
  run.env = "FSDP_PORT=" + std::to_string(freePort()) + " ";
  job = run.run("fsdp=2", "steps");
  EXPECT_EQ(job.output, "done\n");
  run.env = "FSDP_TIMEOUT=4 ";
  job = run.run("fsdp=2", "steps");
  EXPECT_EQ(job.status, 1);
  const std::string port = std::to_string(run.port);
  EXPECT_TRUE(
      job.says("error: cannot listen on port " + port +
               ": Address already in use; it is the port of 127.0.0.1:" + port +
               " (MASTER_PORT), where the ranks of all machines connect: set FSDP_PORT to a "
               "free one for every rank\n"))
      << job.output;
}

TEST(Tcp, NamesMissingRanks) {
  TcpRun run{4, 1};
  run.env = "FSDP_TIMEOUT=5 ";
  run.absent = " 1 3 ";
  Finished job = run.run("fsdp=4", "steps");
  EXPECT_EQ(job.status, 1);
  const std::string place = "127.0.0.1:" + std::to_string(run.port) + " (MASTER_PORT)";
  EXPECT_EQ(job.output,
            "error: timed out after 5 s at " + place +
                ", waiting for rank 1, 3 of 4 (--timeout sets the timeout in seconds)\n");
  EXPECT_LT(job.seconds, kSoon);
  run.absent = " 0 3 ";
  job = run.run("fsdp=4", "steps");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("error: timed out after 5 s waiting for rank 0 at " + place +
                       ": Connection refused (MASTER_ADDR and FSDP_PORT give its address, "
                       "--timeout sets the timeout in seconds)\n"))
      << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

TEST(Tcp, NamesRanksThatLeftBeforeAllHadJoined) {
  TcpRun run{3, 1};
  run.absent = " 2 ";
  run.env = FSDP_LONG_TIMEOUT;
  run.own = {"", "timeout -s KILL 4"};
  Finished job = run.run("fsdp=3", "steps");
  EXPECT_TRUE(job.says("error: rank 1 on '")) << job.output;
  EXPECT_TRUE(job.says("' disconnected while the job was starting\n")) << job.output;
  EXPECT_LT(job.seconds, kSoon);
  run.own = {"timeout -s KILL 4", ""};
  job = run.run("fsdp=3", "steps");
  EXPECT_TRUE(job.says("error: rank 0 at 127.0.0.1:" + std::to_string(run.port) +
                       " (MASTER_PORT) disconnected while the job was starting\n"))
      << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

// A firewall that lets ranks come to rank 0, and nowhere else.
TEST(Tcp, NamesTheMissingConnection) {
  using namespace base;
  using namespace fsdp::rt;
  const Socket listener = listenOn(0);
  std::string reason;
  const Address open = resolve("127.0.0.1", portOf(listener), reason).at(0);
  Rendezvous met;
  met.rank = 1;
  met.peers.resize(3);
  met.peers[0].address = {open.host, freePort()};
  met.peers[2].address = open;
  met.connections.push_back(connectTo(open, 1, reason));
  ControlChannel control(std::move(met), 10);
  for (int peer : {0, 2})
    try {
      control.join(peer, 5, [] {}, 0.2);
      FAIL() << peer;
    } catch (const Error &error) {
      const std::string said = error.what();
      EXPECT_NE(said.find(format(
                    "timed out after 0.2 s waiting for a connection with rank %d on '' (127.0.0.1:",
                    peer)),
                std::string::npos)
          << said;
      EXPECT_NE(
          said.find(peer ? "): it did not connect; ranks connect to each other directly, on any "
                           "port"
                         : "): Connection refused; ranks connect to each other directly"),
          std::string::npos)
          << said;
    }
}

TEST(Tcp, NeedsAMeetingPlace) {
  Finished job = runCommand("env -u SLURM_STEP_ID -u MASTER_ADDR RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 "
                            "LOCAL_WORLD_SIZE=2 " RANKS_PROGRAM " fsdp=4 steps");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.output, "error: ranks on several machines connect to the address in MASTER_ADDR, "
                        "which is not set: set it to that of rank 0's machine, on every rank\n");
  job = runCommand("env -u SLURM_STEP_ID RANK=1 WORLD_SIZE=2 MASTER_ADDR=no.such.host.invalid "
                   "FSDP_TIMEOUT=0.5 " RANKS_PROGRAM " fsdp=2 steps");
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_TRUE(
      job.says("error: timed out after 0.5 s waiting for rank 0 at no.such.host.invalid:29500 "
               "(the default port, as MASTER_PORT is not set): "))
      << job.output;
}

// Under srun without MPI, somebody says where to meet.
TEST(Tcp, MeetsUnderSlurm) {
  const std::string port = std::to_string(freePort());
  std::string start = "sh -c 'for r in 0 1; do SLURM_PROCID=$r SLURM_STEP_ID=0 SLURM_NTASKS=2 "
                      "SLURM_LOCALID=0 SLURM_STEP_NUM_NODES=2 SLURM_JOB_ID=7 FSDP_MACHINE=$r "
                      "MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                      port + " " RANKS_PROGRAM " fsdp=2 steps & done; wait'";
  Finished job = runCommand(start);
  EXPECT_EQ(job.output, "done\n");
}

// What connects and is no rank of this job changes nothing: one that says nothing, one that says
// something else, one that says half of something, and a rank of another program.
TEST(Tcp, SendsStrangersAway) {
  TcpRun run{2, 1};
  run.env = FSDP_LONG_TIMEOUT;
  const std::string port = std::to_string(run.port);
  const fsdp::rt::TemporaryFile file("here"); // made when they have come
  const std::string &here = file.path;
  unlink(here.c_str());
  const std::string stray = "import socket,sys,time\n"
                            "def come(text):\n"
                            "  for _ in range(5000):\n"
                            "    try: s=socket.create_connection((\"127.0.0.1\"," +
                            port +
                            "))\n"
                            "    except OSError: time.sleep(0.02)\n"
                            "    else: s.sendall(text); return s\n"
                            "held=[come(t) for t in (b\"\", b\"GET / "
                            "HTTP/1.0\\\\r\\\\n\\\\r\\\\n\", b\"x\"*5, b\"y\"*5000)]\n"
                            "open(\"" +
                            here +
                            "\",\"w\")\n"
                            "time.sleep(1)\n";
  run.absent = " 1 ";
  const std::string first = run.command(RANKS_PROGRAM " fsdp=2 steps");
  TcpRun rest = run, other = run;
  rest.absent = other.absent = " 0 ";
  Finished job = runCommand("sh -c '(" + first + ") & python3 -c '\"'\"'" + stray +
                            "'\"'\"' & for i in $(seq 3000); do [ -e " + here +
                            " ] && break; sleep 0.1; done; (" +
                            other.command(RANKS_PROGRAM " a=1,fsdp=2 steps") + "); sleep 0.2; (" +
                            rest.command(RANKS_PROGRAM " fsdp=2 steps") + "); wait'");
  EXPECT_TRUE(job.says("done\n")) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says("runs another program, or belongs to another job: got '' of mesh "
                       "'a=1,fsdp=2' on 2 ranks, expected '' of mesh 'fsdp=2' on 2, at 127.0.0.1:" +
                       port))
      << job.output;
}

TEST(Tcp, RefusesTwoOfARank) {
  TcpRun run{3, 1};
  run.env = "FSDP_TIMEOUT=5 ";
  run.own = {"", "", "RANK=1"};
  Finished job = run.run("fsdp=3", "steps");
  EXPECT_EQ(job.status, 1);
  EXPECT_TRUE(job.says("error: rank 1 on '")) << job.output;
  EXPECT_TRUE(job.says("': RANK must differ on every process\n")) << job.output;
  EXPECT_TRUE(job.says(" for rank 2 of 3; rejected: rank 1 on '")) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

// Whoever knows another secret, or none, is sent away; the ranks that know it go on.
TEST(Tcp, RequiresTheToken) {
  TcpRun run{2, 1};
  run.env = "FSDP_TIMEOUT=6 FSDP_JOB_TOKEN=correct-horse-battery ";
  EXPECT_EQ(run.run("fsdp=2", "steps").output, "done\n");
  run.own = {"", "env -u FSDP_JOB_TOKEN"};
  for (const char *own : {"env -u FSDP_JOB_TOKEN", "env FSDP_JOB_TOKEN=battery-staple-correct"}) {
    run.own[1] = own;
    run.port = freePort();
    Finished job = run.run("fsdp=2", "steps");
    EXPECT_NE(job.status, 0);
    EXPECT_TRUE(job.says("error: rank 0 at 127.0.0.1:" + std::to_string(run.port) +
                         " (MASTER_PORT) has a different FSDP_JOB_TOKEN than rank 1: set it to the "
                         "same secret on every rank\n"))
        << job.output;
    EXPECT_TRUE(job.says(" for rank 1 of 2; rejected: 127.0.0.1:")) << job.output;
    EXPECT_TRUE(job.says(" has a different FSDP_JOB_TOKEN (")) << job.output;
    EXPECT_FALSE(job.says("horse")) << job.output;
  }
}

/// An address of this machine that is not the loopback device's, or "".
std::string networkAddress() {
  Finished found = runCommand("hostname -I");
  const std::string first = found.output.substr(0, found.output.find_first_of(" \n"));
  return found.status == 0 && first.find('.') != first.npos ? first : "";
}

// The port is open to the network, but nobody who comes from there is heard without a token.
TEST(Tcp, HearsTheNetworkOnlyWithATokenOrTrust) {
  const std::string address = networkAddress();
  if (address.empty())
    GTEST_SKIP() << "this machine has no address but the loopback device's";
  TcpRun run{2, 1};
  run.env = "FSDP_TIMEOUT=6 MASTER_ADDR=" + address + " FSDP_JOB_TOKEN=correct-horse-battery ";
  EXPECT_EQ(run.run("fsdp=2", "steps").output, "done\n");
  run.env = "FSDP_TIMEOUT=6 TRUST_NETWORK=1 MASTER_ADDR=" + address + " ";
  run.port = freePort();
  EXPECT_EQ(run.run("fsdp=2", "steps").output, "done\n");
  // Rank 0 has looked at another address, as names may have several.
  run.own = {"env -u TRUST_NETWORK MASTER_ADDR=127.0.0.1", ""};
  run.port = freePort();
  Finished job = run.run("fsdp=2", "steps");
  EXPECT_TRUE(job.says(" connected over the network to a job without FSDP_JOB_TOKEN "))
      << job.output;
  EXPECT_NE(job.status, 0);
}

// Who waits for those that are not there does so for this long.
constexpr const char *kTimeout = "FSDP_TIMEOUT=4 ";

struct Fault {
  const char *mode;
  int perMachine, status;
  const char *cause;
  const char *env = FSDP_LONG_TIMEOUT;
};
void PrintTo(const Fault &f, std::ostream *out) { *out << f.mode << " " << f.perMachine; }

class FaultsOverTcp : public testing::TestWithParam<Fault> {};

INSTANTIATE_TEST_SUITE_P(
    Modes, FaultsOverTcp,
    testing::Values(
        Fault{"throw", 1, 1, "error: rank 1: the planted fault\n"},
        Fault{"throw", 2, 1, "error: rank 1: the planted fault\n"},
        Fault{"kernel", 1, 1, "error: rank 1, 'faulty kernel': the planted fault of a kernel\n"},
        Fault{"sigkill", 1, 1, "error: rank 1: exited unexpectedly"},
        Fault{"sigkill", 2, 1, "error: rank 1: exited unexpectedly"},
        Fault{"exit", 1, 1, "error: rank 1: exited unexpectedly on '"},
        Fault{"stop", 1, 1, "error: rank 1: not responding: no heartbeat for ", kTimeout},
        Fault{"spin", 1, 1, " over 'all axes', waiting for rank 1", kTimeout},
        Fault{"leave", 1, 1, "for rank 1, which has ended already\n"},
        Fault{"kind", 1, 1, "collectives over 'all axes' do not match: "},
        Fault{"count", 2, 1, "'all_gather of f32 1x3336x1 of 10000'"},
        Fault{"group", 1, 1, "1x3336x1 of 10007, first of a group of 2 with hash "},
        Fault{"sizes", 1, 1, "called 'send of f32 x4 to rank 1 of the group (message 1)'"},
        Fault{"crossing", 1, 1, "timed out after 4 s in '", kTimeout}));

TEST_P(FaultsOverTcp, EndEveryRank) {
  TcpRun run{3, GetParam().perMachine};
  run.env = GetParam().env;
  if (std::string(GetParam().mode) == "stop")
    run.env += "timeout -s KILL 15 "; // or nobody would end the process that is stopped
  Finished job = run.run("fsdp=3", GetParam().mode);
  EXPECT_NE(job.status, 0) << job.output;
  // A collective may miss a rank that is stopped before its signs of life are missed.
  const bool late = std::string(GetParam().mode) == "stop" && job.says("waiting for rank 1");
  EXPECT_TRUE(job.says(GetParam().cause) || late) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

// Nobody is left to tell it to the others: those of each machine say it.
TEST(Tcp, EndsWithoutRankZero) {
  TcpRun run{3, 1};
  run.env = FSDP_LONG_TIMEOUT;
  Finished job = run.run("fsdp=3", "lose-first");
  EXPECT_NE(job.status, 0);
  EXPECT_TRUE(job.says("error: rank 0: exited unexpectedly on '")) << job.output;
  EXPECT_GE(job.errors(), 1) << job.output;
  EXPECT_LE(job.errors(), 2) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

} // namespace
