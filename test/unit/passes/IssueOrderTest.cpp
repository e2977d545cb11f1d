//===- IssueOrderTest.cpp - issue order keeps what a segment computes -----===//

#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ProgramOrder.h"

#include "gtest/gtest.h"

#include <numeric>
#include <random>

using namespace mlir::fsdp::schedule;

namespace {

Launch makeLaunch(std::string name, std::vector<Access> reads, std::vector<Access> writes) {
  Launch launch;
  launch.name = std::move(name);
  launch.reads = std::move(reads);
  launch.writes = std::move(writes);
  return launch;
}

/// The definition, pair by pair.
bool isReordered(const std::vector<Launch> &issued, const std::vector<int> &order) {
  auto isMinimum = [](const Launch &launch, const Access &access) {
    return std::find(launch.minima.begin(), launch.minima.end(), access) != launch.minima.end();
  };
  auto conflict = [&](const Launch &a, const Launch &b) {
    auto touch = [&](const std::vector<Access> &ours, const std::vector<Access> &theirs) {
      for (const Access &one : ours)
        for (const Access &other : theirs)
          if (one.overlaps(other) && !(isMinimum(a, one) && isMinimum(b, other)))
            return true;
      return false;
    };
    return touch(a.writes, b.writes) || touch(a.writes, b.reads) || touch(a.reads, b.writes);
  };
  for (size_t second = 0; second < issued.size(); ++second)
    for (size_t first = 0; first < second; ++first)
      if (order[first] > order[second] && conflict(issued[first], issued[second]))
        return true;
  return false;
}

TEST(ProgramOrderTest, FindsEachConflictThatIsReordered) {
  std::mt19937 random(7);
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  int reordered = 0;
  const int cases = 5000;
  for (int i = 0; i < cases; ++i) {
    const int count = 2 + draw(8), buffers = 1 + draw(12);
    auto access = [&] {
      const int begin = draw(4);
      return Access{draw(buffers), begin, begin + 1 + draw(4)};
    };
    std::vector<Launch> issued;
    for (int l = 0; l < count; ++l) {
      Launch launch = makeLaunch("l" + std::to_string(l), {access()}, {});
      if (draw(3) == 0)
        launch.writes.push_back(access());
      if (draw(4) == 0) {
        launch.minima.push_back(access());
        launch.reads.push_back(launch.minima.back());
        launch.writes.push_back(launch.minima.back());
      }
      issued.push_back(std::move(launch));
    }
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (int swaps = draw(3); swaps > 0; --swaps)
      std::swap(order[draw(count)], order[draw(count)]);
    const std::optional<ReorderedAccess> found = findReordered(issued, order);
    ASSERT_EQ(found.has_value(), isReordered(issued, order)) << "case " << i;
    if (!found)
      continue;
    ++reordered;
    // The pair that is named shows it alone.
    const int first = std::min(found->earlier, found->later);
    const int second = std::max(found->earlier, found->later);
    ASSERT_EQ(first, found->later);
    ASSERT_TRUE(isReordered({issued[first], issued[second]}, {order[first], order[second]}));
  }
  EXPECT_GT(reordered, cases / 10);
  EXPECT_LT(reordered, cases * 9 / 10);
}

/// A random segment: deferred updates of some shards, then gathers of shards with a use each,
/// reads of shards by the computation, and updates, in any order.
struct RandomSegment {
  Segment segment;
  IssueGroups groups;
};

RandomSegment makeSegment(std::mt19937 &random) {
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  RandomSegment result;
  std::vector<Launch> &launches = result.segment.launches;
  auto add = [&](std::string name, std::vector<Access> reads, std::vector<Access> writes) {
    launches.push_back(makeLaunch(std::move(name), std::move(reads), std::move(writes)));
    return static_cast<int>(launches.size()) - 1;
  };
  int buffers = 0;
  auto whole = [](int buffer) { return Access{buffer, 0, 64}; };
  const int notes = buffers++, input = buffers++;
  result.groups.early.push_back(add("input", {}, {whole(input)}));
  int activation = input;
  const int units = 1 + draw(6);
  std::vector<int> shards, gathered;
  for (int u = 0; u < units; ++u) {
    shards.push_back(buffers++);
    gathered.push_back(buffers++);
    if (draw(3) == 0) // not deferred
      continue;
    const int update = add("u" + std::to_string(u) + ".update", {whole(shards[u]), whole(notes)},
                           {whole(shards[u]), whole(notes)});
    launches[update].minima.push_back(whole(notes));
    result.groups.updates.push_back(update);
  }
  for (int uses = draw(3 * units); uses > 0; --uses) {
    const int u = draw(units);
    const std::string name = "u" + std::to_string(u);
    auto compute = [&](const std::string &kind, int operand) {
      const int next = buffers++;
      add(name + kind, {whole(activation), whole(operand)}, {whole(next)});
      activation = next;
    };
    switch (draw(5)) {
    case 2: // the next microbatch
      result.groups.early.push_back(add("input", {}, {whole(input)}));
      compute(".copy", input);
      break;
    case 0:
      compute(".readShard", shards[u]);
      break;
    case 1:
      add(name + ".updateNow", {whole(shards[u]), whole(activation)}, {whole(shards[u])});
      break;
    default:
      result.groups.gathers.push_back(
          {add(name + ".gather", {whole(shards[u])}, {whole(gathered[u])})});
      compute(".use", gathered[u]);
      gathered[u] = buffers++;
    }
  }
  return result;
}

TEST(IssueOrderTest, LoadsAMicrobatchOnceTheOneBeforeIsCopied) {
  auto whole = [](int buffer) { return Access{buffer, 0, 64}; };
  const int staged = 0, alone = 1;
  Segment segment;
  segment.launches = {makeLaunch("load 0", {}, {whole(staged)}),
                      makeLaunch("copy 0", {whole(staged)}, {whole(2)}),
                      makeLaunch("use 0", {whole(2)}, {whole(3)}),
                      makeLaunch("load 1", {}, {whole(staged)}),
                      makeLaunch("load of another", {}, {whole(alone)}),
                      makeLaunch("copy 1", {whole(staged)}, {whole(4)}),
                      makeLaunch("load 2", {}, {whole(staged)})};
  IssueGroups groups;
  groups.early = {0, 3, 4, 6};
  const std::vector<int> order = orderIssue(segment, groups, 1);
  EXPECT_EQ(order, (std::vector<int>{0, 4, 1, 3, 2, 5, 6}));
}

TEST(IssueOrderTest, KeepsConflictingAccessesInOrder) {
  std::mt19937 random(11);
  int moved = 0;
  for (int i = 0; i < 1500; ++i) {
    RandomSegment drawn = makeSegment(random);
    const std::vector<Launch> before = drawn.segment.launches;
    const int prefetch = static_cast<int>(random() % 4);
    const std::vector<int> order = orderIssue(drawn.segment, drawn.groups, prefetch);
    moved += !std::is_sorted(order.begin(), order.end());
    for (size_t l = 0; l < order.size(); ++l)
      ASSERT_EQ(drawn.segment.launches[l].name, before[order[l]].name);
    const auto found = findReordered(drawn.segment.launches, order);
    ASSERT_FALSE(found) << "case " << i << ": '" << drawn.segment.launches[found->later].name
                        << "' is issued before '" << drawn.segment.launches[found->earlier].name
                        << "'";
  }
  EXPECT_GT(moved, 750);
}

} // namespace
