//===- StageEstimateTest.cpp - pipelines by the plan of one stage ---------===//

#include "tools/fsdpc/StageEstimate.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace fsdpc;

namespace {

PlanSpec pipeline(const std::string &schedule, int64_t ranks, int64_t microbatches) {
  PlanSpec plan;
  plan.mesh = {{"pipeline", ranks}, {"fsdp", 2}};
  plan.strategy = "fsdp";
  plan.schedule = schedule;
  plan.accumulate = microbatches;
  return plan;
}

/// An embedding without flops, blocks, and a head of as many flops as `head` blocks.
std::vector<UnitWork> unitsOf(int64_t blocks, double head) {
  std::vector<UnitWork> units = {{"wte", 0, 50}};
  for (int64_t block = 0; block < blocks; ++block)
    units.push_back({"h." + std::to_string(block), 100, 10});
  units.push_back({"head", 100 * head, 50});
  return units;
}

/// The shares of docs/pipeline.md, P = 4 and K = 8.
TEST(StageEstimateTest, IdleTimeIsThatOfTheSchedule) {
  for (auto [schedule, share] :
       {std::pair("gpipe", 0.273), {"1f1b", 0.273}, {"interleaved:2", 0.158}, {"zb", 0.111}}) {
    const double idle = timePipeline(pipeline(schedule, 4, 8), 1, {}) - 1;
    EXPECT_NEAR(idle / (1 + idle), share, 5e-4) << schedule;
  }
}

/// P = 4, K = 8, a microbatch computes for 1 s.
TEST(StageEstimateTest, TransfersAreHiddenAsTheScheduleAllows) {
  auto time = [](const std::string &schedule, double transfer) {
    return timePipeline(pipeline(schedule, 4, 8), 8, {3 * transfer, transfer});
  };
  // The first and the last microbatch wait for 6 transfers. Of the others only 1f1b waits: it has
  // as many in flight as there are ranks.
  EXPECT_NEAR(time("gpipe", 0.1), 8 + 3 + 0.6, 1e-9);
  EXPECT_NEAR(time("1f1b", 0.1), 8 * (1 + 2 * 0.75 * 0.1) + 3 + 0.6, 1e-9);
  EXPECT_NEAR(time("zb", 0.1), 8 + 1 + 0.6, 1e-9);
  EXPECT_NEAR(time("interleaved:2", 0.1), 8 + 1.5 + 0.6, 1e-9);
  // Longer ones: a third of the computation can hide the two of zb, a half those of interleaved:2.
  EXPECT_NEAR(time("zb", 0.4), 8 * (2.0 / 3 + 2 * 0.75 * 0.4) + 1 + 2.4, 1e-9);
  EXPECT_NEAR(time("interleaved:2", 0.25), 8 + 1.5 + 1.5, 1e-9);
  // The link sends both stages' activations and their gradients.
  EXPECT_NEAR(time("interleaved:2", 1), 8 * 4 + 1.5 + 6, 1e-9);
  EXPECT_NEAR(time("gpipe", 1), 8 * 2 + 3 + 6, 1e-9);
  // One slow transfer of three counts once for each microbatch in flight.
  EXPECT_NEAR(timePipeline(pipeline("1f1b", 4, 8), 8, {0.4, 0.4}), 8 * 1.2 + 3 + 0.8, 1e-9);
}

TEST(StageEstimateTest, BlocksTakeWhatOneMoreBlockAdds) {
  PlanCosts whole;
  whole.exact = false;
  whole.step = 10;
  whole.secondsOfBlock = 2;
  const std::vector<double> seconds = timeUnits(whole, unitsOf(4, 3), 4);
  EXPECT_EQ(seconds, (std::vector<double>{0, 2, 2, 2, 2, 2}));
  // Without blocks that are known, by flops.
  for (auto [second, expected] :
       llvm::zip_equal(timeUnits(whole, unitsOf(4, 1), 0), std::vector<double>{0, 2, 2, 2, 2, 2}))
    EXPECT_DOUBLE_EQ(second, expected);
  const std::vector<double> byFlops = timeUnits(whole, unitsOf(4, 4), 7);
  EXPECT_DOUBLE_EQ(byFlops.back(), 5);
  EXPECT_DOUBLE_EQ(std::accumulate(byFlops.begin(), byFlops.end(), 0.0), 10);
}

TEST(StageEstimateTest, CostsAreThoseOfTheLargestStage) {
  PlanCosts whole;
  whole.exact = false;
  whole.step = 12;
  whole.computing = 12;
  whole.secondsOfBlock = 1;
  whole.itemsPerSecond = 1;
  whole.mfu = 0.5;
  whole.arena = 1000;
  whole.stored = 600;
  whole.saved = 200;
  whole.working = 50;
  // Ten blocks of a second each, and a head of two: two stages of six seconds.
  PlanSpec plan = pipeline("1f1b", 2, 4);
  std::optional<PlanCosts> costs = estimateStages(plan, whole, unitsOf(10, 2), 10, {});
  ASSERT_TRUE(costs);
  EXPECT_FALSE(costs->exact);
  EXPECT_EQ(plan.stages, (std::vector<int64_t>{7, 5}));
  EXPECT_DOUBLE_EQ(costs->computing, 6);
  EXPECT_DOUBLE_EQ(costs->step, 6 * 1.25);
  EXPECT_DOUBLE_EQ(costs->itemsPerSecond, 12 / 7.5);
  EXPECT_DOUBLE_EQ(costs->mfu, 0.5 * 12 / 7.5 / 2);
  // The embedding and six blocks are 110 of 200 elements. The first stage keeps half of the
  // activations of two microbatches, the last one that of a single one, beside the head's 150.
  EXPECT_EQ(costs->stored, 330);
  EXPECT_EQ(costs->saved, 200);
  EXPECT_EQ(costs->arena, 330 + 50 + 100 + 150);
  // A transfer of 1 s: each microbatch waits for one of the two, and the first and last for both.
  costs = estimateStages(plan, whole, unitsOf(10, 2), 10, {1, 1});
  ASSERT_TRUE(costs);
  EXPECT_DOUBLE_EQ(costs->step, 4 * (1.5 + 1) + 1.5 + 2);
  EXPECT_DOUBLE_EQ(costs->exposed, 4 + 2);
  // With all forwards first it is four microbatches.
  plan = pipeline("gpipe", 2, 4);
  costs = estimateStages(plan, whole, unitsOf(10, 2), 10, {});
  ASSERT_TRUE(costs);
  EXPECT_EQ(costs->arena, 330 + 50 + 400 + 150);
}

TEST(StageEstimateTest, SomeSchedulesDoNotSuit) {
  PlanCosts whole;
  whole.step = 1;
  PlanSpec odd = pipeline("interleaved:2", 2, 3), few = pipeline("interleaved:2", 2, 4),
           fits = pipeline("1f1b", 2, 4);
  EXPECT_FALSE(estimateStages(odd, whole, unitsOf(8, 1), 0, {}));
  EXPECT_FALSE(estimateStages(few, whole, unitsOf(1, 1), 0, {}));
  EXPECT_TRUE(estimateStages(fits, whole, unitsOf(1, 1), 0, {}));
  EXPECT_TRUE(fits.stages.empty()); // flops alone: they are timed when the plan is compiled
}

} // namespace
