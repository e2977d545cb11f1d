//===- InterferenceTest.cpp - spans, sums and bytes over time -------------===//

#include "passes/schedule/Interference.h"
#include "passes/schedule/OccupiedBytes.h"
#include "test/unit/passes/RandomProblem.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace mlir::fsdp::schedule;

namespace {

bool overlap(std::pair<int, int> a, std::pair<int, int> b) {
  return std::max(a.first, b.first) < std::min(a.second, b.second);
}

/// Calls `check` with the interference of random schedules on one and on several streams, some of
/// which wait for one another.
template <class Function> void forRandomSchedules(Function &&check) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    RandomShape shape;
    shape.streams = 1 + round % 4;
    shape.launches = 4 + round % 23;
    shape.buffers = 2 + round % 11;
    Problem problem = makeRandomProblem(random, shape);
    Role &role = problem.roles[0];
    if (round % 3 != 0)
      for (Segment &segment : role.segments)
        materializeWaits(segment);
    check(Interference(role, 0));
  }
}

// Blocks interfere where their spans overlap and where one is listed for the other, and nowhere
// else.
TEST(InterferenceTest, SpansAndListsDetermineInterference) {
  int overlapping = 0, apart = 0, neither = 0;
  forRandomSchedules([&](const Interference &interference) {
    int count = static_cast<int>(interference.getBlocks().size());
    for (int x = 0; x < count; ++x) {
      const std::vector<int> &listed = interference.interferingApart(x);
      EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
      for (int y = 0; y < count; ++y) {
        bool isListed = std::binary_search(listed.begin(), listed.end(), y);
        bool overlaps = x != y && overlap(interference.spanOf(x), interference.spanOf(y));
        EXPECT_FALSE(isListed && overlaps);
        EXPECT_EQ(interference.interfere(x, y), isListed || overlaps);
        ++(isListed ? apart : overlaps ? overlapping : neither);
      }
    }
  });
  // All three cases occur.
  EXPECT_GT(overlapping, 1000);
  EXPECT_GT(apart, 100);
  EXPECT_GT(neither, 1000);
}

TEST(InterferenceTest, SumsSizesOfInterferingBlocks) {
  forRandomSchedules([&](const Interference &interference) {
    const std::vector<Block> &blocks = interference.getBlocks();
    std::vector<int64_t> sums = interference.sumInterfering();
    ASSERT_EQ(sums.size(), blocks.size());
    for (int x = 0; x < static_cast<int>(blocks.size()); ++x) {
      int64_t expected = blocks[x].size;
      for (int y = 0; y < static_cast<int>(blocks.size()); ++y)
        if (interference.interfere(x, y))
          expected += blocks[y].size;
      EXPECT_EQ(sums[x], expected);
    }
  });
}

// Every byte at every time against a table of them.
TEST(OccupiedBytesTest, CollectsOccupiedBytes) {
  constexpr int kTimes = 21, kBytes = 40;
  std::mt19937 random(5);
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 200; ++round) {
    OccupiedBytes occupied(kTimes);
    bool table[kTimes][kBytes] = {};
    for (int step = 0; step < 12; ++step) {
      int from = draw(kTimes), until = from + 1 + draw(kTimes - from);
      ByteRangeUnion collected;
      occupied.collect(from, until, collected);
      const std::vector<ByteRange> &ranges = collected.take();
      for (size_t i = 1; i < ranges.size(); ++i)
        EXPECT_LT(ranges[i - 1].end, ranges[i].begin);
      for (int byte = 0; byte < kBytes; ++byte) {
        bool expected = false, found = false;
        for (int time = from; time < until; ++time)
          expected |= table[time][byte];
        for (const ByteRange &range : ranges)
          found |= range.begin <= byte && byte < range.end;
        EXPECT_EQ(found, expected) << "byte " << byte << " from " << from << " until " << until;
      }
      int begin = draw(kBytes), end = begin + 1 + draw(kBytes - begin);
      occupied.occupy(from, until, {begin, end});
      for (int time = from; time < until; ++time)
        std::fill(table[time] + begin, table[time] + end, true);
    }
  }
}

// Ranges that adjoin are one, so that a tower of blocks is not collected block by block.
TEST(OccupiedBytesTest, JoinsRangesThatAdjoin) {
  OccupiedBytes occupied(8);
  for (int64_t block : {0, 2, 4, 3, 1})
    occupied.occupy(2, 4, {64 * block, 64 * block + 64});
  ByteRangeUnion ranges;
  occupied.collect(2, 4, ranges);
  ASSERT_EQ(ranges.take().size(), 1u);
  EXPECT_EQ(ranges.take()[0].begin, 0);
  EXPECT_EQ(ranges.take()[0].end, 320);
  ranges.clear();
  occupied.collect(4, 8, ranges);
  EXPECT_TRUE(ranges.take().empty());
}

} // namespace
