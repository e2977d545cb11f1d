// Two writers of one file leave every byte as it was given to them, and never meet in a page.

#include "runtime/files/RangeWriter.h"
#include "test/unit/base/PowerLossFileSystem.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr std::size_t kPage = FileSystem::kDirectAlignment;

TEST(RangeWriter, WritesLongAndShortRangesAsTheyFollow) {
  PowerLossFileSystem system("/");
  std::mt19937 random(7);
  std::string expected(200000, '\0');
  int file;
  ASSERT_EQ(system.open("/f", FileSystem::Open::CreateNew, file), 0);
  ASSERT_EQ(system.resize(file, expected.size()), 0);
  // Two writers in turns, each with every second range; ranges follow on one another, in parts of
  // any size.
  RangeWriter even(system, {4 * kPage, kPage}), odd(system, {2 * kPage, 1});
  ASSERT_EQ(even.open("/f"), 0);
  ASSERT_EQ(odd.open("/f"), 0);
  std::size_t at = 0;
  for (int range = 0; at < expected.size(); ++range) {
    const std::size_t end =
        std::min(expected.size(), at + 1 + random() % (range % 5 == 0 ? 60000 : 5000));
    while (at < end) {
      const std::size_t count = std::min<std::size_t>(end - at, 1 + random() % 9000);
      for (std::size_t i = at; i < at + count; ++i)
        expected[i] = static_cast<char>(random());
      ASSERT_EQ((range % 2 ? odd : even).write(expected.data() + at, count, at), 0);
      at += count;
    }
  }
  ASSERT_EQ(even.finish(), 0);
  ASSERT_EQ(odd.finish(), 0);
  EXPECT_GT(system.directWrites, 10);
  EXPECT_EQ(system.tree().at("").at("f"), expected);
  EXPECT_EQ(system.pending(), 1u) << "all but the file's name is on the device";
}

TEST(RangeWriter, EveryCallThatFailsIsReported) {
  const std::string data(5 * kPage, 'x');
  int failed = 0;
  for (int failing = 0;; ++failing) {
    PowerLossFileSystem system("/");
    int file;
    ASSERT_EQ(system.open("/f", FileSystem::Open::CreateNew, file), 0);
    system.failingCall = system.calls + failing;
    system.failure = EIO;
    int reason;
    {
      RangeWriter writer(system, {2 * kPage, 1});
      reason = writer.open("/f");
      if (!reason)
        reason = writer.write(data.data(), data.size(), 100);
      if (!reason)
        reason = writer.finish();
    }
    if (system.calls <= system.failingCall)
      break;
    EXPECT_EQ(reason, EIO) << "call " << failing;
    ++failed;
  }
  EXPECT_GE(failed, 9)
      << "two opens, a head, three pairs of pages or less, a tail, a sync, two closes";
}

} // namespace
