#include "base/Thread.h"

#include "gtest/gtest.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace base;

/// Leaves the process `bytes` bytes of address space, and prints why a thread cannot start.
static void startWithin(std::size_t bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit space;
  getrlimit(RLIMIT_AS, &space);
  space.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + bytes;
  setrlimit(RLIMIT_AS, &space);
  try {
    startThread("--threads=2", [] {}).join();
  } catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

// The C library reports EAGAIN here too; the limit of processes is not the cause.
// In a process of its own: the C library keeps stacks of threads that have ended.
TEST(Thread, NamesTheLimitOfAddressSpace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(startWithin(std::size_t(1) << 20), testing::ExitedWithCode(1),
              "cannot start the thread of --threads=2: .*: the limit of address space, "
              "'ulimit -v', got [0-9]+ KiB, must leave room for a stack of [0-9]+ KiB; raise it, "
              "or lower 'ulimit -s' or --threads");
}

TEST(Thread, StartsWithinTheLimit) {
  EXPECT_EXIT(startWithin(std::size_t(256) << 20), testing::ExitedWithCode(0), "");
}

TEST(Thread, NamesTheLimitOfProcessesIfAStackFits) {
  EXPECT_EQ(explainThreadLimit(), "the user's limit of processes, 'ulimit -u', or pids.max of its "
                                  "cgroup, must leave room for more threads");
}
