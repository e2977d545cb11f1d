//===- PlanFitTest.cpp - the largest count that fits ----------------------===//

#include "tools/fsdpc/PlanFit.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace fsdpc;

namespace {

constexpr int64_t kMax = 1000;

/// Finds the largest of 1 to `most` with at most `limit` of `bytesOf(count)`, and checks that it
/// was tried, and the next one too. Returns how many counts were tried.
template <class BytesOf>
size_t expectLargest(int64_t start, int64_t most, int64_t limit, const BytesOf &bytesOf,
                     bool isKnown) {
  std::set<int64_t> tried;
  const int64_t found = findLargest(start, most, limit, [&](int64_t count) -> FitAttempt {
    EXPECT_TRUE(count >= 1 && count <= most) << count;
    EXPECT_TRUE(tried.insert(count).second) << count << " twice";
    const int64_t bytes = bytesOf(count);
    return {bytes <= limit, isKnown ? std::optional(bytes) : std::nullopt};
  });
  EXPECT_TRUE(found == 0 || (bytesOf(found) <= limit && tried.count(found))) << found;
  EXPECT_TRUE(found == most || (bytesOf(found + 1) > limit && tried.count(found + 1))) << found;
  return tried.size();
}

TEST(PlanFitTest, FindsTheLargestFromEveryStart) {
  for (int64_t largest = 0; largest <= kMax; largest += largest < 10 ? 1 : 33)
    for (int64_t start : {0, 1, 7, 64, 999, 5000})
      EXPECT_LE(expectLargest(
                    start, kMax, largest, [](int64_t n) { return n; }, false),
                2 * std::ceil(std::log2(kMax)) + 2);
}

/// A limit beyond every model ends at a number of layers that is compiled in seconds.
TEST(PlanFitTest, LayersEndWhereTheyAreCompiledInSeconds) {
  EXPECT_EQ(mostTried("layers", 12), 1024);
  EXPECT_EQ(mostTried("layers", 2000), 2000);
  EXPECT_EQ(mostTried("batch", 12), INT32_MAX);
}

/// Of what grows evenly few counts are compiled, and none that is much larger than the answer.
TEST(PlanFitTest, FollowsALine) {
  for (int64_t largest : {1, 2, 37, 500, 999, 12345, 1 << 30})
    for (int64_t start : {1, 7, 64}) {
      int64_t longest = 0;
      const size_t tried = expectLargest(
          start, INT32_MAX, 1000 + 17 * largest,
          [&](int64_t n) {
            longest = std::max(longest, n);
            return 1000 + 17 * n;
          },
          true);
      EXPECT_LE(tried, 5u) << largest << " from " << start;
      EXPECT_LE(longest, std::max(largest + 1, 2 * start)) << largest << " from " << start;
    }
}

/// Steps, bends and jumps mislead the line, and cost some counts more.
TEST(PlanFitTest, FindsTheLargestOffTheLine) {
  const auto steps = [](int64_t n) { return (n + 63) / 64 * 64 + n / 100; };
  const auto square = [](int64_t n) { return n * n + 5 * n; };
  const auto root = [](int64_t n) { return static_cast<int64_t>(1000 * std::sqrt(n)) + n; };
  const auto jump = [](int64_t n) { return n < 500 ? n : 1'000'000 + n; };
  for (int64_t most : {1, 2, 1000, 1 << 20})
    for (int64_t start : {1, 10, 700})
      for (int64_t limit : {0, 1, 70, 640, 5000, 20'000, 999'999, 2'000'000}) {
        const double allowed = 4 * std::ceil(std::log2(most)) + 4;
        EXPECT_LE(expectLargest(start, most, limit, steps, true), allowed);
        EXPECT_LE(expectLargest(start, most, limit, square, true), allowed);
        EXPECT_LE(expectLargest(start, most, limit, root, true), allowed);
        EXPECT_LE(expectLargest(start, most, limit, jump, true), allowed);
      }
}

} // namespace
