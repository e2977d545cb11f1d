//===- MemoryPlannerTest.cpp - plans are right, and small -----------------===//

#include "passes/schedule/MemoryPlanner.h"
#include "passes/schedule/BlockPlacer.h"
#include "passes/schedule/Checker.h"
#include "passes/schedule/HappensBefore.h"
#include "passes/schedule/Peak.h"
#include "test/unit/passes/RandomProblem.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

using namespace mlir::fsdp::schedule;

namespace {

std::string describe(const std::vector<Finding> &findings) {
  std::string text;
  for (const Finding &finding : findings)
    text += finding.message + "\n";
  return text;
}

/// The smallest possible arena: tries, for every order of the buffers, every position that touches
/// another buffer or the bottom, and runs the checker.
class ExhaustivePlanner {
public:
  explicit ExhaustivePlanner(Problem problem) : problem(std::move(problem)) {
    Role &role = this->problem.roles[0];
    for (size_t i = 0; i < role.buffers.size(); ++i) {
      if (role.buffers[i].isPersistent()) {
        role.buffers[i].offset = bottom;
        bottom += (role.buffers[i].size + 63) / 64 * 64;
      } else {
        transient.push_back(static_cast<int>(i));
        // Out of everybody's way until it is placed.
        role.buffers[i].offset = (int64_t(1) << 40) + (static_cast<int64_t>(i) << 20);
      }
    }
    role.arena = std::numeric_limits<int64_t>::max();
    best = std::numeric_limits<int64_t>::max();
  }

  int64_t run() {
    place(std::vector<int>(), 0);
    return best;
  }

private:
  void place(const std::vector<int> &placed, int64_t height) {
    if (height >= best)
      return;
    if (placed.size() == transient.size()) {
      best = height;
      return;
    }
    Role &role = problem.roles[0];
    for (int buffer : transient) {
      if (std::count(placed.begin(), placed.end(), buffer))
        continue;
      std::vector<int64_t> candidates{bottom};
      for (int other : placed) {
        candidates.push_back(role.buffers[other].offset);
        candidates.push_back((role.buffers[other].offset + role.buffers[other].size + 63) / 64 *
                             64);
      }
      std::sort(candidates.begin(), candidates.end());
      candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
      int64_t parked = role.buffers[buffer].offset;
      for (int64_t candidate : candidates) {
        // In order of offsets, as a canonical form: each plan is met once.
        if (!placed.empty() && candidate < role.buffers[placed.back()].offset)
          continue;
        role.buffers[buffer].offset = candidate;
        int64_t top = candidate + role.buffers[buffer].size;
        if (top < best && checkSchedule(problem).empty()) {
          std::vector<int> next = placed;
          next.push_back(buffer);
          place(next, std::max(height, top));
        }
      }
      role.buffers[buffer].offset = parked;
    }
  }

  Problem problem;
  std::vector<int> transient;
  int64_t bottom = 0, best;
};

TEST(MemoryPlannerTest, PlansOfRandomSchedulesPassTheChecker) {
  std::mt19937 random(1);
  int tight = 0, cases = 1500;
  for (int i = 0; i < cases; ++i) {
    RandomShape shape;
    shape.launches = 3 + static_cast<int>(random() % 30);
    shape.buffers = 1 + static_cast<int>(random() % 20);
    shape.streams = 1 + static_cast<int>(random() % 4);
    shape.persistent = 1 + static_cast<int>(random() % 3);
    shape.segments = 1 + static_cast<int>(random() % 2);
    Problem problem = makeScheduledProblem(random, shape);
    ASSERT_EQ(describe(checkSchedule(problem)), "") << "case " << i << ", before planning";
    MemoryPlan plan = planMemory(problem.roles[0]);
    applyPlan(plan, problem.roles[0]);
    ASSERT_EQ(describe(checkSchedule(problem)), "") << "case " << i;
    ASSERT_GE(plan.arena, plan.lowerBound) << "case " << i;
    tight += plan.arena < plan.lowerBound + 64;
  }
  EXPECT_GE(tight, cases * 95 / 100);
}

TEST(BlockPlacerTest, PairsAndTimesGiveTheSamePlaces) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    RandomShape shape;
    shape.launches = 3 + static_cast<int>(random() % 60);
    shape.buffers = 1 + static_cast<int>(random() % 100);
    shape.streams = 1 + static_cast<int>(random() % 4);
    Problem problem = makeScheduledProblem(random, shape);
    Interference interference(problem.roles[0], 0);
    BlockPlacer byPairs(interference), byTimes(interference, /*maxPairs=*/0);
    std::vector<int> order(interference.getBlocks().size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (Fit fit : {Fit::lowest, Fit::tightest}) {
      Placement one = byPairs.place(order, fit);
      ASSERT_EQ(one.offsets, byTimes.place(order, fit).offsets) << "case " << i;
      // The same order again, of which some blocks keep their places.
      size_t kept = order.empty() ? 0 : random() % order.size();
      std::vector<int> other = order, moved;
      if (random() % 2) {
        std::shuffle(other.begin() + kept, other.end(), random);
        moved.assign(other.begin() + kept, other.end());
      } else if (kept + 2 < order.size()) { // one of these
        moved.push_back(other.back());
        std::rotate(other.begin() + kept, other.end() - 1, other.end());
      }
      const int64_t limit = random() % 2 ? BlockPlacer::kNoLimit : one.height + 1;
      Placement again = byPairs.replace(other, kept, moved, one, fit, limit);
      Placement anew = byTimes.place(other, fit, limit);
      ASSERT_EQ(again.height, anew.height) << "case " << i;
      ASSERT_EQ(again.offsets, anew.offsets) << "case " << i;
    }
  }
}

TEST(MemoryPlannerTest, IsAsGoodAsTryingEverything) {
  std::mt19937 random(2);
  int best = 0, cases = 150;
  for (int i = 0; i < cases; ++i) {
    RandomShape shape;
    shape.launches = 3 + static_cast<int>(random() % 8);
    shape.buffers = 1 + static_cast<int>(random() % 5);
    shape.streams = 1 + static_cast<int>(random() % 3);
    Problem problem = makeScheduledProblem(random, shape);
    MemoryPlan plan = planMemory(problem.roles[0]);
    int64_t least = ExhaustivePlanner(problem).run();
    ASSERT_GE(plan.arena, least) << "case " << i << ": the oracle is not exhaustive";
    best += plan.arena < least + 64; // the padding on top is not worth a search
  }
  // The planner keeps whole buffers apart, from their first use to their last, and decides before
  // placing which operand a result replaces; the checker allows more.
  EXPECT_GE(best, cases * 90 / 100);
}

/// x -> a -> b -> c on one stream, each as large as the others.
Problem makeChain(bool inPlace) {
  Role role{"all", {"compute"}, {}, {}, -1};
  Segment segment{"train", {}, {0}, true};
  for (int i = 0; i < 4; ++i)
    role.buffers.push_back({"b" + std::to_string(i), 256, 0, -1});
  for (int i = 0; i < 4; ++i) {
    Launch launch;
    launch.name = "l" + std::to_string(i);
    if (i > 0)
      launch.reads.push_back({i - 1, 0, 256});
    launch.writes.push_back({i, 0, 256});
    if (inPlace && i > 0)
      launch.inPlace.push_back({0, 0});
    segment.launches.push_back(launch);
  }
  role.segments.push_back(segment);
  return {{}, {role}};
}

TEST(MemoryPlannerTest, ReusesDeadBuffers) {
  MemoryPlan plan = planMemory(makeChain(false).roles[0]);
  EXPECT_EQ(plan.arena, 512);
  EXPECT_EQ(plan.lowerBound, 512);
}

TEST(MemoryPlannerTest, WorksInPlace) {
  MemoryPlan plan = planMemory(makeChain(true).roles[0]);
  EXPECT_EQ(plan.arena, 256);
  EXPECT_EQ(plan.offsets, std::vector<int64_t>({0, 0, 0, 0}));
}

TEST(MemoryPlannerTest, DoesNotOverwriteBuffersThatAreReadLater) {
  Problem problem = makeChain(true);
  problem.roles[0].segments[0].launches[3].reads.push_back({1, 0, 256}); // b1 lives on
  MemoryPlan plan = planMemory(problem.roles[0]);
  EXPECT_NE(plan.offsets[1], plan.offsets[2]);
  applyPlan(plan, problem.roles[0]);
  EXPECT_EQ(describe(checkSchedule(problem)), "");
}

TEST(MemoryPlannerTest, SharesNothingBetweenStreamsWithoutAWait) {
  Problem problem = makeChain(false);
  problem.roles[0].streams.push_back("gather");
  // The last two overlap with the first two: their order is undefined.
  Segment &segment = problem.roles[0].segments[0];
  segment.launches[2].reads.clear();
  segment.launches[2].stream = segment.launches[3].stream = 1;
  EXPECT_EQ(planMemory(problem.roles[0]).arena, 1024);
  segment.launches[2].waits = {1};
  EXPECT_EQ(planMemory(problem.roles[0]).arena, 512);
}

TEST(MemoryPlannerTest, SegmentsShareAndPersistentBuffersDoNot) {
  Problem problem = makeChain(false);
  Role &role = problem.roles[0];
  role.buffers.push_back({"state", 100, -1, -1});
  role.buffers.push_back({"weights", 60, -1, -1});
  role.buffers.push_back({"e", 300, 1, -1});
  role.segments.push_back({"evaluate", {}, {0, 1}, true});
  role.segments[0].next = {0, 1};
  Launch launch;
  launch.name = "evaluate";
  launch.reads.push_back({5, 0, 60});
  launch.writes.push_back({6, 0, 300});
  role.segments[1].launches.push_back(launch);
  MemoryPlan plan = planMemory(role);
  EXPECT_EQ(plan.offsets[4], 0);
  EXPECT_EQ(plan.offsets[5], 128);
  EXPECT_EQ(plan.persistent, 192);
  EXPECT_EQ(plan.offsets[6], 192);
  EXPECT_EQ(plan.arena, 192 + 512);
  applyPlan(plan, role);
  EXPECT_EQ(describe(checkSchedule(problem)), "");
}

TEST(PeakTest, NamesLiveBuffersAndTheirStart) {
  // b0 -> b1 -> b2 on one stream; b0 is needed again at the end: all three are alive from launch 2
  // on.
  Role role{"all", {"s"}, {{"p", 100, -1, -1}}, {}, -1};
  Segment segment{"g", {}, {0}, true};
  for (int b = 0; b < 4; ++b)
    role.buffers.push_back({"b" + std::to_string(b), 64 + b, 0, -1});
  auto add = [&](std::vector<Access> reads, std::vector<Access> writes) {
    segment.launches.push_back({"l", 0, {}, std::move(reads), std::move(writes), {}, {}});
  };
  add({{0, 0, 100}}, {{1, 0, 64}});
  add({{1, 0, 64}}, {{2, 0, 65}});
  add({{2, 0, 65}}, {{3, 0, 66}});
  add({{1, 0, 64}, {3, 0, 66}}, {});
  add({}, {{4, 0, 67}});
  role.segments.push_back(segment);
  Peak peak = findPeak(role);
  EXPECT_EQ(peak.buffers, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(peak.segment, 0);
  EXPECT_EQ(peak.launch, 2);
  // In whole 64 bytes, but for one of the two that end between: 128 + 64 + 128 + 128 - 63.
  EXPECT_EQ(peak.bytes, 385);
}

TEST(PeakTest, OfBuffersInOnePlaceTheLatestIsAlive) {
  Role role{"all", {"s"}, {}, {}, -1};
  Segment segment{"g", {}, {0}, true};
  for (int b = 0; b < 3; ++b)
    role.buffers.push_back({"b" + std::to_string(b), 64, 0, -1});
  segment.launches.push_back({"make", 0, {}, {}, {{0, 0, 64}}, {}, {}});
  segment.launches.push_back({"negate", 0, {}, {{0, 0, 64}}, {{1, 0, 64}}, {{0, 0}}, {}});
  segment.launches.push_back({"other", 0, {}, {}, {{2, 0, 64}}, {}, {}});
  segment.launches.push_back({"use", 0, {}, {{1, 0, 64}, {2, 0, 64}}, {}, {}, {}});
  role.segments.push_back(segment);
  Peak peak = findPeak(role);
  EXPECT_EQ(peak.buffers, (std::vector<int>{1, 2}));
  EXPECT_EQ(peak.launch, 2);
  EXPECT_EQ(peak.bytes, 128);
}

TEST(PeakTest, WithoutTransientBuffersNoLaunchIsThePeak) {
  Role role{"all", {"s"}, {{"p", 100, -1, -1}, {"q", 10, -1, -1}}, {}, -1};
  role.segments.push_back({"g", {{"read", 0, {}, {{0, 0, 100}}, {}, {}, {}}}, {0}, true});
  Peak peak = findPeak(role);
  EXPECT_EQ(peak.buffers, (std::vector<int>{0, 1}));
  EXPECT_EQ(peak.launch, -1);
  EXPECT_EQ(peak.segment, -1);
  EXPECT_EQ(peak.bytes, 138);
}

// No plan may put two buffers of the peak on one byte, and together they are the lower bound.
TEST(PeakTest, BuffersOfThePeakShareNothing) {
  std::mt19937 random(5);
  int touched = 0;
  for (int i = 0; i < 500; ++i) {
    RandomShape shape;
    shape.launches = 3 + static_cast<int>(random() % 30);
    shape.buffers = 1 + static_cast<int>(random() % 20);
    shape.streams = 1 + static_cast<int>(random() % 4);
    shape.persistent = 1 + static_cast<int>(random() % 3);
    shape.segments = 1 + static_cast<int>(random() % 2);
    Problem problem = makeScheduledProblem(random, shape);
    Role &role = problem.roles[0];
    Peak peak = findPeak(role);
    MemoryPlan plan = planMemory(role);
    ASSERT_EQ(peak.bytes, plan.lowerBound) << "case " << i;
    int64_t sum = 0;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (int b : peak.buffers) {
      const Buffer &buffer = role.buffers[b];
      ASSERT_TRUE(buffer.isPersistent() || buffer.segment == peak.segment) << "case " << i;
      sum += buffer.size;
      ranges.push_back({plan.offsets[b], plan.offsets[b] + buffer.size});
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t r = 1; r < ranges.size(); ++r)
      ASSERT_LE(ranges[r - 1].second, ranges[r].first) << "case " << i;
    ASSERT_LE(sum, peak.bytes) << "case " << i;
    ASSERT_LT(peak.bytes, sum + kAlignment * static_cast<int64_t>(peak.buffers.size() + 1));
    touched += peak.launch >= 0;
  }
  EXPECT_GT(touched, 400);
}

TEST(MemoryPlannerTest, PlansTwiceAlike) {
  std::mt19937 random(3);
  RandomShape shape;
  shape.launches = 200;
  shape.buffers = 120;
  Problem problem = makeScheduledProblem(random, shape);
  MemoryPlan first = planMemory(problem.roles[0]), second = planMemory(problem.roles[0]);
  EXPECT_EQ(first.offsets, second.offsets);
  applyPlan(first, problem.roles[0]);
  EXPECT_EQ(describe(checkSchedule(problem)), "");
}

TEST(WaitsTest, ElisionKeepsTheOrderAndNothingElse) {
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    RandomShape shape;
    shape.launches = 3 + static_cast<int>(random() % 25);
    shape.buffers = 1 + static_cast<int>(random() % 10);
    Problem problem = makeRandomProblem(random, shape);
    Segment &segment = problem.roles[0].segments[0];
    materializeWaits(segment);
    HappensBefore full(segment.launches);
    elideImpliedWaits(segment);
    HappensBefore reduced(segment.launches);
    for (int l = 0; l < full.size(); ++l)
      ASSERT_EQ(full.clockOf(l).vec(), reduced.clockOf(l).vec()) << "case " << i;
    // Each remaining wait is needed.
    for (Launch &launch : segment.launches)
      for (size_t w = 0; w < launch.waits.size(); ++w) {
        std::vector<int> kept = launch.waits;
        launch.waits.erase(launch.waits.begin() + static_cast<long>(w));
        HappensBefore without(segment.launches);
        launch.waits = kept;
        int l = static_cast<int>(&launch - segment.launches.data());
        ASSERT_FALSE(without.before(kept[w], l)) << "case " << i;
      }
  }
}

} // namespace
