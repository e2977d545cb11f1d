//===- CollectivesTest.cpp - textbook numbers -----------------------------===//

#include "passes/cost/Collectives.h"

#include "gtest/gtest.h"

#include <cmath>
#include <numeric>

using namespace mlir::fsdp::cost;

namespace {

/// Nodes of 8 ranks with 400 GB/s and 5 us, connected with 50 GB/s of a rank and 10 us.
Machine twoLevels(int64_t nodes) {
  Machine machine;
  machine.links = {{"inside", 8, 400e9, 5e-6}, {"between", 8 * nodes, 50e9, 10e-6}};
  machine.algorithms = {"ring", "tree", "hierarchical"};
  return machine;
}

GroupShape firstRanks(int64_t count, const Machine &machine) {
  std::vector<int64_t> group(count);
  std::iota(group.begin(), group.end(), 0);
  return shapeOf(group, machine);
}

double by(const char *algorithm, const char *kind, double bytes, const GroupShape &group,
          const Machine &machine) {
  return timeBy(algorithm, kind, bytes, group, machine)->seconds;
}

TEST(Collectives, RingInOneNode) {
  const Machine machine = twoLevels(1);
  const GroupShape group = firstRanks(8, machine);
  // (P - 1)/P * S/B + (P - 1) * alpha of 1 GB: 2.1875 ms + 35 us.
  EXPECT_NEAR(by("ring", "all_gather", 1e9, group, machine), 2.2225e-3, 1e-12);
  EXPECT_NEAR(by("ring", "reduce_scatter", 1e9, group, machine), 2.2225e-3, 1e-12);
  EXPECT_NEAR(by("ring", "all_reduce", 1e9, group, machine), 4.445e-3, 1e-12);
  // S/B + (P - 1) * alpha
  EXPECT_NEAR(by("ring", "broadcast", 1e9, group, machine), 2.5e-3 + 35e-6, 1e-12);
  EXPECT_NEAR(by("ring", "all_to_all", 1e9, group, machine), 2.2225e-3, 1e-12);
  EXPECT_NEAR(by("ring", "send", 1e9, group, machine), 2.505e-3, 1e-12);
}

TEST(Collectives, LogarithmicSteps) {
  const Machine machine = twoLevels(1);
  const GroupShape group = firstRanks(8, machine);
  EXPECT_NEAR(by("recursive", "all_gather", 1e9, group, machine), 2.1875e-3 + 15e-6, 1e-12);
  EXPECT_NEAR(by("tree", "all_reduce", 1e9, group, machine), 5e-3 + 30e-6, 1e-12);
  EXPECT_NEAR(by("tree", "broadcast", 1e9, group, machine), 2.5e-3 + 15e-6, 1e-12);
  EXPECT_NEAR(by("direct", "all_gather", 1e9, group, machine), 2.1875e-3 + 5e-6, 1e-12);
  EXPECT_FALSE(timeBy("tree", "all_gather", 1e9, group, machine));
}

TEST(Collectives, RingOverNodesUsesTheCardOfEachRank) {
  const Machine machine = twoLevels(2);
  // 8 ranks a node: 8 * 50 GB/s between the nodes, 15 steps of the slower latency.
  EXPECT_NEAR(by("ring", "all_gather", 1e9, firstRanks(16, machine), machine),
              15.0 / 16 * 1e9 / 400e9 + 15 * 10e-6, 1e-12);
  // One rank a node: its own card.
  EXPECT_NEAR(by("ring", "all_gather", 1e9, shapeOf({0, 8}, machine), machine),
              0.5 * 1e9 / 50e9 + 10e-6, 1e-12);
}

TEST(Collectives, HierarchicalByLevels) {
  const Machine machine = twoLevels(4);
  // Among 4 nodes each rank has 1/8: 3/4 * S/8 / 50 GB/s + 3 * 10 us; then 7/8 * S / 400 GB/s + 7 *
  // 5 us.
  const double expected = 0.75 * 1e9 / 8 / 50e9 + 30e-6 + 7.0 / 8 * 1e9 / 400e9 + 35e-6;
  const GroupShape group = firstRanks(32, machine);
  EXPECT_NEAR(by("hierarchical", "all_gather", 1e9, group, machine), expected, 1e-12);
  EXPECT_NEAR(by("hierarchical", "all_reduce", 1e9, group, machine), 2 * expected, 1e-12);
}

TEST(Collectives, TheFastestCounts) {
  const Machine machine = twoLevels(4);
  const GroupShape group = firstRanks(32, machine);
  // Large values by the ring, which sends each byte once; small ones by few steps.
  EXPECT_EQ(timeOf("all_gather", 1e9, group, machine).algorithm, "ring");
  EXPECT_EQ(timeOf("all_gather", 1e3, group, machine).algorithm, "hierarchical");
  EXPECT_EQ(timeOf("all_reduce", 1e3, group, machine).algorithm, "tree");
  for (const std::string &algorithm : machine.algorithms)
    if (auto time = timeBy(algorithm, "all_reduce", 1e6, group, machine))
      EXPECT_LE(timeOf("all_reduce", 1e6, group, machine).seconds, time->seconds);
}

TEST(Collectives, ExchangeBetweenNodes) {
  const Machine machine = twoLevels(2);
  // Half of a rank's data goes to the other node over its own card.
  EXPECT_NEAR(by("ring", "all_to_all", 1e9, firstRanks(16, machine), machine),
              0.5 * 1e9 / 50e9 + 15 * 10e-6, 1e-12);
}

TEST(Collectives, OneRankMovesNothing) {
  const Machine machine = twoLevels(2);
  EXPECT_EQ(timeOf("all_reduce", 1e9, shapeOf({3}, machine), machine).seconds, 0);
}

TEST(Collectives, ShapesOfGroups) {
  const Machine machine = twoLevels(4);
  EXPECT_EQ(shapeOf({0, 8, 16, 24}, machine).perLevel, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(shapeOf({0, 1, 8, 9}, machine).perLevel, (std::vector<int64_t>{2, 4}));
  // The rank that is alone in its node takes all from others over its own link.
  EXPECT_EQ(shapeOf({0, 1, 2, 3, 4, 5, 6, 7, 8}, machine).perLevel, (std::vector<int64_t>{1, 9}));
  EXPECT_EQ(shapeOf({6, 7, 8, 9, 10, 11}, machine).perLevel, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(slowerOf(shapeOf({0, 1, 2, 3}, machine), shapeOf({6, 7, 8, 9}, machine)).perLevel,
            (std::vector<int64_t>{2, 4}));
}

TEST(Collectives, NodesThatAreFilledUnevenly) {
  const Machine machine = twoLevels(2);
  // 8 and 1 ranks: the last one receives 8/9 of the value through one card. 8 and 4: each of the
  // four a fourth of 8/12. Not less than that by any algorithm.
  for (auto [ranks, seconds] : {std::pair(9, 8.0 / 9 / 50), {12, 8.0 / 12 / 4 / 50}}) {
    const double time = timeOf("all_gather", 1e9, firstRanks(ranks, machine), machine).seconds;
    EXPECT_GE(time, seconds) << ranks;
    EXPECT_LE(time, 1.5 * seconds) << ranks; // the other level takes time too
  }
}

// Reports print what a collective achieves beside what it could without latencies.
TEST(Collectives, AchieveAtMostTheirBandwidth) {
  const Machine machine = twoLevels(4);
  for (const char *kind : {"all_gather", "all_reduce", "all_to_all", "broadcast"})
    for (const char *algorithm : {"ring", "recursive", "tree", "hierarchical", "direct"})
      for (const int64_t ranks : {2, 8, 12, 32})
        for (const double bytes : {64.0, 1e9}) {
          const GroupShape group = firstRanks(ranks, machine);
          const std::optional<CollectiveTime> time = timeBy(algorithm, kind, bytes, group, machine);
          if (!time)
            continue;
          EXPECT_LE(time->busBytes / time->seconds, time->linkBandwidth)
              << kind << ' ' << algorithm << ' ' << ranks;
          if (bytes > 1e6)
            EXPECT_GE(time->busBytes / time->seconds, 0.4 * time->linkBandwidth)
                << kind << ' ' << algorithm << ' ' << ranks;
        }
}

TEST(Collectives, BandwidthOfAKind) {
  Machine machine = twoLevels(1);
  machine.links[0].bandwidths["all_reduce"] = 800e9;
  EXPECT_NEAR(by("ring", "all_reduce", 1e9, firstRanks(8, machine), machine), 2.1875e-3 + 70e-6,
              1e-12);
}

} // namespace
