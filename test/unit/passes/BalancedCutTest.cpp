//===- BalancedCutTest.cpp - against all cuts -----------------------------===//

#include "passes/schedule/BalancedCut.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace mlir::fsdp::schedule;

namespace {

using Quality = std::pair<double, double>; ///< the dearest part, and the sum of squares

Quality qualityOf(const std::vector<double> &costs, const std::vector<int64_t> &lengths) {
  Quality quality{0, 0};
  size_t at = 0;
  for (int64_t length : lengths) {
    double cost = 0;
    for (int64_t i = 0; i < length; ++i)
      cost += costs.at(at++);
    quality = {std::max(quality.first, cost), quality.second + cost * cost};
  }
  EXPECT_EQ(at, costs.size());
  return quality;
}

Quality bestOfAll(const std::vector<double> &costs, int64_t parts) {
  Quality best{1e300, 1e300};
  std::vector<int64_t> lengths;
  std::function<void(int64_t)> extend = [&](int64_t left) {
    if (static_cast<int64_t>(lengths.size()) + 1 == parts) {
      lengths.push_back(left);
      best = std::min(best, qualityOf(costs, lengths));
      lengths.pop_back();
      return;
    }
    for (int64_t length = 1; length < left; ++length) {
      lengths.push_back(length);
      extend(left - length);
      lengths.pop_back();
    }
  };
  extend(static_cast<int64_t>(costs.size()));
  return best;
}

// Sums of small integers are exact.
TEST(BalancedCutTest, IsTheBestOfAllCuts) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> costs(1 + random() % 10);
    for (double &cost : costs)
      cost = random() % 6;
    const int64_t parts = 1 + random() % costs.size();
    const std::vector<int64_t> lengths = cutBalanced(costs, parts);
    ASSERT_EQ(static_cast<int64_t>(lengths.size()), parts);
    for (int64_t length : lengths)
      EXPECT_GE(length, 1);
    EXPECT_EQ(qualityOf(costs, lengths), bestOfAll(costs, parts)) << "round " << round;
  }
}

// What computes and what gathers run at the same time: a part takes as long as the longer of both.
TEST(BalancedCutTest, CountsTheResourceOfWhichAPartNeedsMost) {
  const std::vector<std::vector<double>> costs = {{4, 1}, {4, 1}, {1, 9}, {1, 9}};
  EXPECT_EQ(cutBalanced(costs, 2), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(costsOfParts(costs, {3, 1}), (std::vector<double>{11, 9}));
  EXPECT_EQ(costsOfParts(costs, {2, 2}), (std::vector<double>{8, 18}));
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<double>> items(2 + random() % 7, std::vector<double>(3));
    for (std::vector<double> &item : items)
      for (double &cost : item)
        cost = random() % 6;
    auto dearest = [&](const std::vector<int64_t> &lengths) {
      const std::vector<double> parts = costsOfParts(items, lengths);
      return *std::max_element(parts.begin(), parts.end());
    };
    const auto count = static_cast<int64_t>(items.size());
    double least = 1e300;
    for (int64_t first = 1; first < count; ++first)
      least = std::min(least, dearest({first, count - first}));
    EXPECT_EQ(dearest(cutBalanced(items, 2)), least) << "round " << round;
  }
}

TEST(BalancedCutTest, LeavesADearUnitAlone) {
  EXPECT_EQ(cutBalanced(std::vector<double>{1, 1, 1, 9, 1, 1}, 3), (std::vector<int64_t>{3, 1, 2}));
}

} // namespace
