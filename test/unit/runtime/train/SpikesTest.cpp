//===- SpikesTest.cpp - which steps are spikes ----------------------------===//

#include "runtime/train/Spikes.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdp::rt;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(SpikesTest, LimitsAreMeanAndDeviationsOfTheLatestSteps) {
  StepHistory history;
  const SpikeRule rule{/*deviations=*/2, /*window=*/4};
  EXPECT_EQ(history.limits(rule).steps, 0);
  history.add(100, 10);
  EXPECT_EQ(history.limits(rule).steps, 0);
  EXPECT_EQ(history.limits(rule).loss, kInfinity);
  history.add(1, 10); // half of the window: sigma^2 = (49.5^2 + 49.5^2) / 1
  SpikeLimits limits = history.limits(rule);
  EXPECT_EQ(limits.steps, 2);
  EXPECT_FLOAT_EQ(limits.loss, 50.5f + 2 * 49.5f * std::sqrt(2.0f));
  EXPECT_EQ(limits.gradNorm, 10);
  for (float loss : {2.0f, 3.0f, 6.0f}) // the first one is not among the latest 4
    history.add(loss, 10);
  limits = history.limits(rule);
  EXPECT_EQ(limits.steps, 4);
  EXPECT_FLOAT_EQ(limits.loss, 3 + 2 * std::sqrt(14.0f / 3));
  EXPECT_TRUE(limits.allow(limits.loss, 10));
  EXPECT_FALSE(limits.allow(std::nextafter(limits.loss, kInfinity), 10));
  EXPECT_FALSE(limits.allow(3, std::nextafter(10.0f, kInfinity)));
  EXPECT_EQ(history.limits({2, 5}).steps, 5); // of another rule
}

TEST(SpikesTest, StepsThatAreNotFiniteDoNotCount) {
  StepHistory history;
  for (float bad : {kInfinity, -kInfinity, NAN}) {
    history.add(bad, 1);
    history.add(1, bad);
  }
  EXPECT_TRUE(history.losses().empty());
  EXPECT_TRUE(history.gradNorms().empty());
}

TEST(SpikesTest, KeepsTheLatestOfCheckpoints) {
  StepHistory history(2), longer(200);
  for (int step = 0; step < 300; ++step)
    for (StepHistory *each : {&history, &longer})
      each->add(static_cast<float>(step), 1);
  ASSERT_EQ(history.losses().size(), 128u);
  EXPECT_EQ(history.losses().front(), 172);
  ASSERT_EQ(longer.gradNorms().size(), 200u);
  history.restore(longer.losses(), longer.gradNorms());
  ASSERT_EQ(history.losses().size(), 128u);
  EXPECT_EQ(history.losses().front(), 172);
  EXPECT_EQ(history.losses().back(), 299);
}

TEST(SpikesTest, NamesTheValueAndItsLimit) {
  const Spike spike{{4.125f, 2, 64}, {2.5, 128}};
  EXPECT_EQ(spike.describe(9, 1), "got loss 9 above 4.125");
  EXPECT_EQ(spike.describe(1, 3), "got gradient norm 3 above 2");
  EXPECT_EQ(spike.describe(9, 3), "got loss 9 above 4.125 and gradient norm 3 above 2");
  EXPECT_EQ(spike.kind(), "a spike of more than 2.5 standard deviations over 64 steps");
}

} // namespace
