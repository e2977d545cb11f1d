// The identity that ranks compare when they connect, the socket on which the ranks of a machine get
// their memory, the token, and how much memory there is.
#include "runtime/job/JobToken.h"
#include "runtime/job/Machine.h"
#include "runtime/job/NodeLocalGroup.h"
#include "runtime/job/RendezvousSocket.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

/// The message of the error that `act` throws, or "".
std::string errorOf(const std::function<void()> &act) {
  try {
    act();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }

//===----------------------------------------------------------------------===//
// Error
//===----------------------------------------------------------------------===//

TEST(ErrorTest, ShowsNoControlCharacters) {
  constexpr char text[] = "'a\0b' '\x1b[31mred' '\xc2\x9b' two\nlines '\xc3\xa9'";
  const std::string hostile(text, sizeof text - 1);
  const std::string shown = Error(hostile).what();
  EXPECT_EQ(shown, "'a\\x00b' '\\x1B[31mred' '\\xC2\\x9B' two\\nlines '\xc3\xa9'");
}

//===----------------------------------------------------------------------===//
// RunIdentity
//===----------------------------------------------------------------------===//

TEST(RunIdentity, NamesDifferences) {
  RunIdentity first, second;
  first.add("--lr", "0.01");
  first.add("--seed", "1");
  first.add("--shuffle", std::nullopt);
  first.add("--init", "of 3 tensors");
  EXPECT_EQ(RunIdentity::parse(first.text()).differenceFrom(first, 1), "");
  second.add("--lr", "0.1");
  second.add("--seed", "1");
  second.add("--shuffle", "");
  second.add("--init", std::nullopt);
  EXPECT_EQ(
      RunIdentity::parse(second.text()).differenceFrom(RunIdentity::parse(first.text()), 2),
      "rank 2 was started with --lr 0.1 and with --shuffle and without --init, rank 0 with --lr "
      "0.01 and without --shuffle and with --init of 3 tensors; start all ranks with the same "
      "program, options and files");
  // Fields that only one of them has, as another version of the program may.
  second = first;
  second.add("--new", "4");
  EXPECT_TRUE(has(second.differenceFrom(first, 1), "with --new 4, rank 0 without --new;"));
  EXPECT_TRUE(has(first.differenceFrom(second, 1), "without --new, rank 0 with --new 4;"));
}

TEST(RunIdentity, IsBounded) {
  RunIdentity identity;
  for (int i = 0; i < 1000; ++i)
    identity.add(std::string(500, 'n') + std::to_string(i), std::string(5000, 'v'));
  EXPECT_LE(identity.text().size(), RunIdentity::kMaxBytes);
  RunIdentity one, other;
  one.add("long", std::string(5000, 'v') + "1");
  other.add("long", std::string(5000, 'v') + "2");
  EXPECT_NE(one.differenceFrom(other, 1), "") << "the end is in the digest";
}

TEST(RunIdentity, DigestsSeeEveryByte) {
  std::string text(5000, 'a');
  const std::uint64_t digest = contentDigest(text);
  for (std::size_t at = 0; at < text.size(); at += 7) {
    text[at] = 'b';
    EXPECT_NE(contentDigest(text), digest) << at;
    text[at] = 'a';
  }
  EXPECT_NE(contentDigest(text + '\0'), digest);
  EXPECT_EQ(contentDigest(text), digest);
  EXPECT_NE(contentDigest(text, 1), digest);
}

// A large one is sampled: its ends, its size, and blocks in between.
TEST(RunIdentity, DigestsOfLargeFilesAreSampled) {
  std::string text(kWholeDigest + (8 << 20), 'a');
  const std::uint64_t digest = sampledDigest(text);
  for (std::size_t at : {std::size_t(0), text.size() - 1, std::size_t(1) << 20}) {
    text[at] = 'b';
    EXPECT_NE(sampledDigest(text), digest) << at;
    text[at] = 'a';
  }
  EXPECT_EQ(sampledDigest(text), digest);
  text += 'a';
  EXPECT_NE(sampledDigest(text), digest);
}

//===----------------------------------------------------------------------===//
// RendezvousSocket
//===----------------------------------------------------------------------===//

class RendezvousSocketTest : public testing::Test {
protected:
  void SetUp() override {
    memory = Descriptor(memfd_create("memory", MFD_CLOEXEC));
    ASSERT_EQ(write(memory.get(), "content", 7), 7);
    identity.add("--lr", "0.1");
  }

  const std::string key = "test-" + std::to_string(getpid());
  Descriptor memory;
  RunIdentity identity;
};

TEST_F(RendezvousSocketTest, PassesTheMemoryAndTheIdentity) {
  EXPECT_FALSE(receiveMemory(key, 0)) << "nothing listens";
  const RendezvousSocket socket(key, memory, identity);
  EXPECT_FALSE(receiveMemory(key + "/other", 0));
  std::optional<SharedMemory> received;
  std::thread other([&] { received = receiveMemory(key, 20); });
  socket.serve(20);
  other.join();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->identity.differenceFrom(identity, 1), "");
  char content[8] = {};
  ASSERT_EQ(pread(received->memory.get(), content, 7, 0), 7);
  EXPECT_STREQ(content, "content");
}

TEST_F(RendezvousSocketTest, OfALivingProcessIsKept) {
  {
    const RendezvousSocket socket(key, memory, identity);
    const std::string said = errorOf([&] { RendezvousSocket(key, memory, identity); });
    EXPECT_TRUE(has(said, "the ranks of this machine cannot share memory: another job of this name "
                          "is starting now (its rank 0 is process " +
                              std::to_string(getpid()) +
                              "); set FSDP_JOB_ID to another name on every rank"))
        << said;
  }
  EXPECT_EQ(errorOf([&] { RendezvousSocket(key, memory, identity); }), "") << "nothing is left";
}

/// The address of the socket for `key`.
std::pair<sockaddr_un, socklen_t> addressOf(const std::string &key) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name =
      "fsdp-" + std::to_string(geteuid()) + "-" + digestText(contentDigest(key));
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

TEST_F(RendezvousSocketTest, ReportsErrorsOfTheSystem) {
  const auto [address, bytes] = addressOf(key);
  const Descriptor mute(socket(AF_UNIX, SOCK_SEQPACKET, 0)); // has the name, and does not listen
  ASSERT_EQ(bind(mute.get(), reinterpret_cast<const sockaddr *>(&address), bytes), 0);
  EXPECT_TRUE(has(errorOf([&] { RendezvousSocket(key, memory, identity); }),
                  "cannot listen on a Unix socket: Address already in use"));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const std::string said = errorOf([&] { receiveMemory(key, 0); });
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(has(said, "cannot open a Unix socket: Too many open files")) << said;
}

// Any user may take the name first.
TEST_F(RendezvousSocketTest, OfAnotherUserIsRefused) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can act as another user";
  const auto [address, bytes] = addressOf(key);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int listener = setuid(65534) == 0 ? socket(AF_UNIX, SOCK_SEQPACKET, 0) : -1;
    if (bind(listener, reinterpret_cast<const sockaddr *>(&address), bytes) != 0 ||
        listen(listener, 8) != 0 || write(ready[1], "1", 1) != 1)
      _exit(1);
    for (;;)
      pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::string expected = "process " + std::to_string(child) +
                               " of user 65534 holds the name of this job's socket, expected a "
                               "process of user 0; set FSDP_JOB_ID to another name on every rank";
  for (const std::string &said : {errorOf([&] { receiveMemory(key, 0); }),
                                  errorOf([&] { RendezvousSocket(key, memory, identity); })})
    EXPECT_TRUE(has(said, expected)) << said;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Two processes with the same RANK: the second has no place.
TEST(NodeLocalGroup, RefusesTwoOfARank) {
  const SharedSegment::Layout layout{2, 1, 4096};
  const std::string key = "group-" + std::to_string(getpid());
  NodeLocalGroup group{0, 0, 2, key, {}};
  std::thread first([&] { EXPECT_NE(errorOf([&] { joinSegment(layout, group, 5); }), ""); });
  NodeLocalGroup same{0, 1, 2, key, {}}; // finds what it did not make
  const std::string said = errorOf([&] { joinSegment(layout, same, 5); });
  EXPECT_TRUE(has(said, "rank 0 of this job has already joined, as process " +
                            std::to_string(getpid()) +
                            ": RANK must differ on every process of a "
                            "job, and FSDP_JOB_ID between jobs"))
      << said;
  first.join();
}

TEST(NodeLocalGroup, RefusesOtherLayouts) {
  const std::string key = "layout-" + std::to_string(getpid());
  std::thread first(
      [&] { EXPECT_NE(errorOf([&] { joinSegment({2, 1, 4096}, {0, 0, 2, key, {}}, 5); }), ""); });
  const std::string said = errorOf([&] { joinSegment({2, 1, 8192}, {1, 0, 2, key, {}}, 5); });
  EXPECT_TRUE(has(said, "the ranks of this machine run different programs: got a segment of"))
      << said;
  first.join();
}

//===----------------------------------------------------------------------===//
// Token
//===----------------------------------------------------------------------===//

std::string tokenOf(const std::map<std::string, std::string> &variables) {
  return jobToken([&](const char *name) -> const char * {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(JobToken, ComesFromAVariableOrAFile) {
  EXPECT_EQ(tokenOf({}), "");
  EXPECT_EQ(tokenOf({{"FSDP_JOB_TOKEN", "0123456789abcdef"}}), "0123456789abcdef");
  TemporaryFile file("token");
  file.write("  the secret of a job\n");
  chmod(file.path.c_str(), 0600);
  EXPECT_EQ(tokenOf({{"FSDP_JOB_TOKEN_FILE", file.path}}), "the secret of a job");
}

TEST(JobToken, RefusesInvalidTokens) {
  TemporaryFile file("token");
  file.write("secret of a job\n");
  chmod(file.path.c_str(), 0644);
  const auto refused = [](const std::map<std::string, std::string> &variables) {
    return errorOf([&] { tokenOf(variables); });
  };
  EXPECT_TRUE(has(refused({{"FSDP_JOB_TOKEN_FILE", file.path}}),
                  "mode 0600, as others could read the token"));
  EXPECT_EQ(refused({{"FSDP_JOB_TOKEN_FILE", "/no/such"}}),
            "cannot open '/no/such' of FSDP_JOB_TOKEN_FILE: No such file or directory");
  EXPECT_EQ(refused({{"FSDP_JOB_TOKEN_FILE", "/dev/null"}}),
            "'/dev/null' of FSDP_JOB_TOKEN_FILE is not a readable regular file");
  EXPECT_EQ(refused({{"FSDP_JOB_TOKEN_FILE", "a"}, {"FSDP_JOB_TOKEN", "b"}}),
            "got both FSDP_JOB_TOKEN and FSDP_JOB_TOKEN_FILE, expected one of them");
  EXPECT_EQ(
      refused({{"FSDP_JOB_TOKEN", "short"}}),
      "the job's token got 5 characters, expected 16 to 256; make one with 'fsdpc --new-token'");
  EXPECT_NE(refused({{"FSDP_JOB_TOKEN", std::string(15, 'x')}}), "") << "few enough to be guessed";
  EXPECT_NE(refused({{"FSDP_JOB_TOKEN", std::string(257, 'x')}}), "");
  EXPECT_NE(refused({{"FSDP_JOB_TOKEN", ""}}), "");
}

TEST(JobToken, IsRequiredOnTheNetworkOnly) {
  LaunchEnvironment launched;
  launched.port = 4000;
  for (const char *here : {"127.0.0.1", "::1", "127.0.1.1", "no.such.host.invalid"}) {
    launched.address = here;
    EXPECT_EQ(errorOf([&] { requireToken(launched, "", false); }), "") << here;
  }
  launched.address = "192.0.2.77";
  EXPECT_TRUE(
      has(errorOf([&] { requireToken(launched, "", false); }), "would connect over the network"));
  EXPECT_EQ(errorOf([&] { requireToken(launched, "12345678", false); }), "");
  EXPECT_EQ(errorOf([&] { requireToken(launched, "", true); }), "");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

constexpr std::uint64_t kGib = std::uint64_t(1) << 30;

class MachineMemoryTest : public testing::Test {
protected:
  void SetUp() override {
    write("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n");
  }
  void TearDown() override { fs::remove_all(folder.folder); }
  void write(const std::string &name, const std::string &text) {
    const fs::path path = fs::path(folder.folder) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  MachineMemory read() const { return MachineMemory::read(folder.folder); }
  TemporaryFile folder;
};

TEST_F(MachineMemoryTest, IsTheMachines) {
  EXPECT_EQ(read().total, 16 * kGib);
  EXPECT_EQ(read().available, 8 * kGib);
  EXPECT_EQ(read().groupLimit, UINT64_MAX);
  EXPECT_GT(MachineMemory::read().available, 0u);
  EXPECT_LE(MachineMemory::read().available, MachineMemory::read().total);
}

TEST_F(MachineMemoryTest, IsTheControlGroups) {
  // The limit of a group above holds too; its cached files can be given up.
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/memory.max", std::to_string(4 * kGib));
  write("sys/fs/cgroup/job/memory.current", std::to_string(3 * kGib));
  write("sys/fs/cgroup/job/memory.stat", "anon 1\nfile 99\ninactive_file " + std::to_string(kGib) +
                                             "\nactive_file " + std::to_string(kGib));
  EXPECT_EQ(read().groupLimit, 4 * kGib);
  EXPECT_EQ(read().groupAvailable, 3 * kGib);
  write("proc/self/cgroup", "3:cpu,memory:/old\n");
  write("sys/fs/cgroup/memory/old/memory.limit_in_bytes", std::to_string(2 * kGib));
  write("sys/fs/cgroup/memory/old/memory.usage_in_bytes", "0");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(read().groupLimit, 2 * kGib);
  EXPECT_EQ(read().groupAvailable, 2 * kGib);
}

TEST_F(MachineMemoryTest, HasToHoldTheArenas) {
  EXPECT_EQ(errorOf([&] { requireMemory(read(), 4, 2 * kGib); }), "");
  EXPECT_EQ(
      errorOf([&] { requireMemory(read(), 4, 2 * kGib + 1); }),
      "the arenas of 4 rank(s) on this machine take 8.00 GiB (2.00 GiB each), but 8.00 GiB of "
      "memory are available (the machine has 16.00 GiB): start fewer ranks on this machine, "
      "free memory, or compile for less: a smaller --batch, --accumulate, --remat=full, more "
      "ranks (--report shows what a rank takes)");
  MachineMemory memory = read();
  memory.groupLimit = 3 * kGib, memory.groupAvailable = kGib;
  EXPECT_TRUE(has(errorOf([&] { requireMemory(memory, 1, 2 * kGib); }),
                  "but 1.00 GiB of memory are available (the limit of this control group is 3.00 "
                  "GiB)"));
  EXPECT_NE(errorOf([&] { requireMemory(memory, 65535, UINT64_MAX / 2); }), "") << "does not wrap";
  EXPECT_EQ(errorOf([&] { requireMemory(MachineMemory(), 65535, 1ull << 40); }), "") << "not known";
}

} // namespace
