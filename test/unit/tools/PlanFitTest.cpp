//===- PlanFitTest.cpp - the largest count that fits ----------------------===//

#include "tools/fsdpc/PlanFit.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace fsdpc;

namespace {

constexpr int64_t kMost = 1000;

TEST(PlanFitTest, FindsTheLargestFromEveryStart) {
  for (int64_t largest = 0; largest <= kMost; largest += largest < 10 ? 1 : 33)
    for (int64_t start : {0, 1, 7, 64, 999, 5000}) {
      std::set<int64_t> tried;
      const int64_t found = findLargest(start, kMost, [&](int64_t count) {
        EXPECT_TRUE(count >= 1 && count <= kMost) << count;
        EXPECT_TRUE(tried.insert(count).second) << count << " twice";
        return count <= largest;
      });
      EXPECT_EQ(found, std::min(largest, kMost));
      // The answer was seen, and so was that the next one does not fit.
      EXPECT_TRUE(found == 0 || tried.count(found));
      EXPECT_TRUE(found == kMost || tried.count(found + 1));
      EXPECT_LE(tried.size(), 2 * std::ceil(std::log2(kMost)) + 2);
    }
}

} // namespace
