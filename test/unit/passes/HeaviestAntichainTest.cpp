//===- HeaviestAntichainTest.cpp - against all subsets of small orders ----===//

#include "passes/schedule/HeaviestAntichain.h"

#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace mlir::fsdp::schedule;

namespace {

/// Nodes that are before later ones, closed.
using Order = std::vector<std::vector<bool>>;

Order makeOrder(std::mt19937 &random, int count, int percent) {
  Order before(count, std::vector<bool>(count, false));
  for (int x = count; x-- > 0;)
    for (int y = x + 1; y < count; ++y) {
      if (static_cast<int>(random() % 100) >= percent)
        continue;
      before[x][y] = true;
      for (int z = y + 1; z < count; ++z)
        before[x][z] = before[x][z] || before[y][z];
    }
  return before;
}

std::vector<std::vector<int>> directSuccessors(const Order &before) {
  const int count = static_cast<int>(before.size());
  std::vector<std::vector<int>> successors(count);
  for (int x = 0; x < count; ++x)
    for (int y = 0; y < count; ++y) {
      bool isDirect = before[x][y];
      for (int z = 0; z < count; ++z)
        isDirect = isDirect && !(before[x][z] && before[z][y]);
      if (isDirect)
        successors[x].push_back(y);
    }
  return successors;
}

/// The sum of the weights of `nodes`, bits; -1 where one is before another.
int64_t weigh(const Order &before, const std::vector<int64_t> &weights, unsigned nodes) {
  const int count = static_cast<int>(before.size());
  int64_t sum = 0;
  for (int x = 0; x < count; ++x) {
    if (!(nodes >> x & 1))
      continue;
    sum += weights[x];
    for (int y = 0; y < count; ++y)
      if ((nodes >> y & 1) && before[x][y])
        return -1;
  }
  return sum;
}

} // namespace

TEST(HeaviestAntichainTest, IsTheHeaviestOfAllSubsets) {
  std::mt19937 random(20261128);
  for (int i = 0; i < 600; ++i) {
    const int count = 1 + static_cast<int>(random() % 9);
    const Order before = makeOrder(random, count, 5 + static_cast<int>(random() % 60));
    std::vector<int64_t> weights(count);
    for (int64_t &weight : weights)
      weight = static_cast<int64_t>(random() % 8);
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    int64_t most = 0;
    for (unsigned nodes = 0; nodes < 1u << count; ++nodes)
      most = std::max(most, weigh(before, weights, nodes));
    unsigned found = 0;
    for (int node : findHeaviestAntichain(directSuccessors(before), order, weights))
      found |= 1u << node;
    ASSERT_EQ(weigh(before, weights, found), most) << "case " << i;
  }
}
