#include "runtime/job/Machine.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sched.h>
#include <string>
#include <thread>

using namespace fsdp::rt;

namespace {

MachineCores cores(int own, int launcher, double quota) { return {own, launcher, quota}; }

TEST(MachineCores, AreDividedByTheRanksOfTheMachine) {
  EXPECT_EQ(cores(16, 0, 0).perRank(1), 16);
  EXPECT_EQ(cores(16, 0, 0).perRank(4), 4);
  EXPECT_EQ(cores(16, 0, 0).perRank(3), 5);
  EXPECT_EQ(cores(2, 0, 0).perRank(8), 1);
}

TEST(MachineCores, AreThoseThatALauncherHasBoundARankTo) {
  EXPECT_EQ(cores(16, 16, 0).perRank(4), 4); // not bound
  EXPECT_EQ(cores(4, 16, 0).perRank(2), 4);  // to 4 cores of its own
  EXPECT_EQ(cores(8, 16, 0).perRank(4), 4);  // to a socket that two ranks share
  EXPECT_EQ(cores(1, 16, 0).perRank(2), 1);
  EXPECT_EQ(cores(2, 2, 0).perRank(2), 1); // taskset around mpirun
}

TEST(MachineCores, AreLimitedByControlGroups) {
  EXPECT_EQ(cores(16, 0, 4).perRank(1), 4);
  EXPECT_EQ(cores(16, 0, 4).perRank(2), 2);
  EXPECT_EQ(cores(16, 0, 2.5).perRank(1), 2);
  EXPECT_EQ(cores(16, 0, 0.5).perRank(1), 1);
  EXPECT_EQ(cores(2, 0, 64).perRank(1), 2);
}

/// A folder with /proc and /sys.
class Root {
public:
  explicit Root(const std::string &groups) { write("proc/self/cgroup", groups); }
  void write(const std::string &path, const std::string &text) {
    const std::filesystem::path file = folder() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string folder() const { return temporary.folder; }

private:
  TemporaryFile temporary;
};

TEST(MachineCores, AreReadFromControlGroupsOfBothVersions) {
  Root second("0::/batch/job\n");
  EXPECT_EQ(MachineCores::read(second.folder()).quota, 0);
  second.write("sys/fs/cgroup/batch/job/cpu.max", "max 100000\n");
  EXPECT_EQ(MachineCores::read(second.folder()).quota, 0);
  second.write("sys/fs/cgroup/batch/cpu.max", "350000 100000\n");
  EXPECT_EQ(MachineCores::read(second.folder()).quota, 3.5);
  second.write("sys/fs/cgroup/batch/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(MachineCores::read(second.folder()).quota, 2);

  Root first("5:memory:/batch\n4:cpu,cpuacct:/batch\n");
  first.write("sys/fs/cgroup/cpu/batch/cpu.cfs_period_us", "100000\n");
  first.write("sys/fs/cgroup/cpu/batch/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(MachineCores::read(first.folder()).quota, 0);
  first.write("sys/fs/cgroup/cpu/batch/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(MachineCores::read(first.folder()).quota, 1.5);
  // In a container the path may not be mounted, but its root is.
  Root container("0::/docker/1234\n");
  container.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(MachineCores::read(container.folder()).quota, 1);
}

TEST(MachineCores, RespectTheAffinityOfTheThread) {
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all))
        CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(MachineCores::read().own, 1);
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    EXPECT_EQ(MachineCores::read().own, CPU_COUNT(&all));
  }).join();
}

} // namespace
