#include "base/Descriptor.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>

using namespace base;
using namespace fsdp::rt;

namespace {

bool isOpen(int number) { return fcntl(number, F_GETFD) >= 0; }

Descriptor opened(const std::string &path, int how = O_RDONLY) {
  return Descriptor(open(path.c_str(), how | O_CREAT, 0600));
}

TEST(Descriptor, IsClosedOnceByWhoHasItLast) {
  const TemporaryFile file("data");
  int number = -1;
  {
    Descriptor last;
    {
      Descriptor first = opened(file.path);
      number = first.get();
      last = std::move(first);
      EXPECT_FALSE(first);
    }
    EXPECT_TRUE(last && isOpen(number));
  }
  EXPECT_FALSE(isOpen(number));
}

TEST(Descriptor, ClosingKeepsErrno) {
  Descriptor wrong(1000); // closing it fails
  errno = ENOSPC;
  wrong.reset();
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_FALSE(wrong);
}

TEST(Descriptor, OneRunLocks) {
  const TemporaryFile file("data");
  Descriptor first = opened(file.path);
  const Descriptor second = opened(file.path);
  EXPECT_TRUE(first.lockAgainstOtherRuns("a.log"));
  EXPECT_FALSE(second.lockAgainstOtherRuns("a.log"));
  first.reset();
  EXPECT_TRUE(second.lockAgainstOtherRuns("a.log"));
}

TEST(Descriptor, WithoutLocksTheRunContinuesWithANote) {
  const Descriptor path(open("/", O_PATH)); // cannot be locked, as files of some file systems
  testing::internal::CaptureStderr();
  EXPECT_TRUE(path.lockAgainstOtherRuns("a.log"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "note: 'a.log' cannot be locked against other runs: Bad file descriptor\n");
}

} // namespace
