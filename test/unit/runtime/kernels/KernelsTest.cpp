#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/Optimizer.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Kernels, DropTheFractionOfTheRate) {
  EXPECT_EQ(dropThreshold(0.0), 0u);
  EXPECT_EQ(dropThreshold(0.5), 1u << 23);
  EXPECT_EQ(dropThreshold(0.1), 1677722u); // 1677721.6 of 2^24: no draw in [0, 0.1) stays
  EXPECT_EQ(dropThreshold(0x1p-25), 1u);
}

// A unit of three parameters, of which the middle one is not decayed, cut in four.
constexpr Parameter kMembers[] = {{"a", nullptr, {30}, {30}, 0, Initializer::zeros(), true},
                                  {"b", nullptr, {11}, {11}, 30, Initializer::zeros(), false},
                                  {"c", nullptr, {20}, {20}, 41, Initializer::zeros(), true}};
constexpr std::size_t kTotal = 61, kLocal = 16;
constexpr Storage kUnit{"unit", Layout::Flat, {0}, 0, 0, kTotal, 5, ArenaSpan<float>{0, kLocal},
                        {},     kMembers};

bool decays(std::size_t global) { return global < 30 || global >= 41; }

TEST(KernelsTest, PartsOfAShardHaveTheDecayOfTheirParameters) {
  for (int coordinate = 0; coordinate < 4; ++coordinate) {
    std::size_t next = 0;
    kernels::forEachUpdatePart(ShardOf{&kUnit, coordinate}, [&](std::size_t begin, std::size_t end,
                                                                UpdateSetting setting) {
      EXPECT_EQ(begin, next) << coordinate;
      EXPECT_LT(begin, end) << coordinate;
      next = end;
      for (std::size_t i = begin; i < end; ++i)
        EXPECT_EQ(setting.decays, decays(std::size_t(coordinate) * kLocal + i))
            << coordinate << ' ' << i;
      EXPECT_EQ(setting.rateScale, 1);
    });
    EXPECT_EQ(next, kLocal) << coordinate;
  }
}

TEST(KernelsTest, NeighboursOfOneDecayAreOnePart) {
  const Parameter members[] = {{"a", nullptr, {5}, {5}, 0, Initializer::zeros(), true},
                               {"b", nullptr, {3}, {3}, 5, Initializer::zeros(), true},
                               {"c", nullptr, {8}, {8}, 8, Initializer::zeros(), false}};
  const Storage unit{"unit", Layout::Flat, {0}, 0, 0, 16, 0, ArenaSpan<float>{0, 16}, {}, members};
  std::vector<std::array<std::size_t, 3>> parts;
  const auto add = [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
    parts.push_back({begin, end, setting.decays});
  };
  kernels::forEachUpdatePart({&unit, 0}, add);
  EXPECT_EQ(parts, (std::vector<std::array<std::size_t, 3>>{{0, 8, 1}, {8, 16, 0}}));
}

TEST(KernelsTest, SettingsOfParametersTakeThePlaceOfTheTables) {
  // Of all parameters of the program, of which five are before this unit. The first and the last
  // of the unit differ from the middle one in their rates alone.
  const std::vector<UpdateSetting> settings = {{9, false}, {9, false},   {9, false},
                                               {9, false}, {9, false},   {0.5f, false},
                                               {2, false}, {0.5f, false}};
  for (int coordinate = 0; coordinate < 4; ++coordinate) {
    std::size_t next = 0;
    const ShardOf shard{&kUnit, coordinate, settings.data()};
    kernels::forEachUpdatePart(
        shard, [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
          EXPECT_EQ(begin, next) << coordinate;
          EXPECT_LT(begin, end) << coordinate;
          next = end;
          for (std::size_t i = begin; i < end; ++i) {
            const std::size_t element = std::size_t(coordinate) * kLocal + i;
            EXPECT_EQ(setting.rateScale, element >= 30 && element < 41 ? 2 : 0.5f) << element;
          }
          EXPECT_FALSE(setting.decays);
        });
    EXPECT_EQ(next, kLocal) << coordinate;
  }
}

TEST(KernelsTest, AShardAlongADimensionIsOnePart) {
  Storage unit = kUnit;
  unit.layout = Layout::Dimension;
  unit.members = {kMembers + 1, 1};
  int parts = 0;
  kernels::forEachUpdatePart({&unit, 3},
                             [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
                               EXPECT_TRUE(begin == 0 && end == kLocal && !setting.decays);
                               ++parts;
                             });
  EXPECT_EQ(parts, 1);
}

TEST(KernelsTest, SquareSumIsTakenInDouble) {
  std::vector<float> values(1000);
  double expected = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = float(i) * 1e18f;
    expected += double(values[i]) * double(values[i]);
  }
  for (std::size_t count : {0, 1, 15, 16, 17, 1000}) {
    double reference = 0;
    for (std::size_t i = 0; i < count; ++i)
      reference += double(values[i]) * double(values[i]);
    double sum = 0;
    kernels::squareSum(count, values.data(), &sum);
    EXPECT_NEAR(sum, reference, 1e-12 * reference);
  }
  EXPECT_GT(expected, double(std::numeric_limits<float>::max()));
}

TEST(KernelsTest, CrossEntropyFollowsItsFormula) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 10);
  for (std::size_t classes : {1, 2, 10, 16, 1000}) {
    const LogitRows shape{5, classes};
    std::vector<float> logits(5 * classes), losses(5), sums(5), upstream(5), gradients(5 * classes);
    for (float &x : logits)
      x = normal(random) + 100; // does not overflow
    std::vector<std::int64_t> labels;
    for (int r = 0; r < 5; ++r) {
      labels.push_back(std::int64_t(random() % classes));
      upstream[std::size_t(r)] = r == 4 ? 0 : normal(random);
    }
    kernels::crossEntropy(shape, logits.data(), labels.data(), losses.data(), sums.data());
    kernels::crossEntropyGrad(shape, logits.data(), labels.data(), sums.data(), upstream.data(),
                              gradients.data());
    for (std::size_t r = 0; r < 5; ++r) {
      const float *row = logits.data() + r * classes;
      double sum = 0;
      for (std::size_t j = 0; j < classes; ++j)
        sum += std::exp(double(row[j]) - 100);
      const auto label = std::size_t(labels[r]);
      EXPECT_NEAR(losses[r], std::log(sum) + 100 - double(row[label]), 1e-5);
      for (std::size_t j = 0; j < classes; ++j)
        EXPECT_NEAR(gradients[r * classes + j],
                    upstream[r] * (std::exp(double(row[j]) - 100) / sum - (j == label)), 3e-4);
    }
    const std::vector<std::int32_t> narrow(labels.begin(), labels.end());
    std::vector<float> same(5);
    kernels::crossEntropy(shape, logits.data(), narrow.data(), same.data(), nullptr);
    EXPECT_EQ(losses, same);
  }
}

TEST(KernelsTest, CrossEntropyNamesALabelOutOfRange) {
  const std::vector<float> logits(6);
  const std::int32_t labels[] = {2, 3};
  float losses[2];
  EXPECT_EQ(
      messageOf([&] { kernels::crossEntropy({2, 3}, logits.data(), labels, losses, losses); }),
      "label of row 1 is 3, expected 0 to 2; correct the data or the model's number of "
      "classes");
  const std::int64_t negative[] = {-1, 0};
  EXPECT_NE(messageOf([&] {
              kernels::crossEntropy({2, 3}, logits.data(), negative, losses, losses);
            }).find("label of row 0 is -1"),
            std::string::npos);
}

TEST(KernelsTest, ClippingIsTheRatioOfTheNormsOrOne) {
  StepState state{};
  const auto scale = [&](float clip, float norm) {
    state.clip = clip;
    float factor = 0;
    kernels::clipScale(&state, &norm, &factor);
    return factor;
  };
  EXPECT_EQ(scale(1, 0), 1);
  EXPECT_EQ(scale(1, 0.5f), 1);
  EXPECT_EQ(scale(1, 4), 1 / (4 + 1e-6f));
  EXPECT_EQ(scale(1, 1), 1 / (1 + 1e-6f));
  EXPECT_EQ(scale(INFINITY, 1e30f), 1);
  EXPECT_EQ(scale(1, INFINITY), 0);
  EXPECT_TRUE(std::isnan(scale(1, NAN)));
}

TEST(KernelsTest, SchedulesFollowTheirFormulas) {
  StepState state{};
  state.baseLearningRate = 2;
  const auto rate = [&](Schedule::Kind kind, int warmup, int step, float minimum = 0,
                        float decayShare = 0) {
    state.step = step - 1;
    state.schedule = ScheduleOptions{kind, warmup, minimum, decayShare}.over(12);
    float rate = 0;
    kernels::learningRate(&state, &rate);
    return rate;
  };
  EXPECT_EQ(rate(Schedule::Constant, 0, 1), 2);
  EXPECT_EQ(rate(Schedule::Constant, 0, 12), 2);
  EXPECT_EQ(rate(Schedule::Constant, 4, 1), 0.5);
  EXPECT_EQ(rate(Schedule::Constant, 4, 4), 2);
  EXPECT_EQ(rate(Schedule::Linear, 2, 2), 2);
  EXPECT_FLOAT_EQ(rate(Schedule::Linear, 2, 7), 1);
  EXPECT_EQ(rate(Schedule::Linear, 2, 12), 0);
  EXPECT_FLOAT_EQ(rate(Schedule::Linear, 0, 3), 1.5f);
  EXPECT_EQ(rate(Schedule::Cosine, 2, 2), 2);
  EXPECT_FLOAT_EQ(rate(Schedule::Cosine, 2, 7), 1);
  EXPECT_NEAR(rate(Schedule::Cosine, 2, 12), 0, 1e-7);
  EXPECT_EQ(rate(Schedule::Linear, 20, 12), 1.2f) << "a warm-up longer than the run";
  EXPECT_EQ(rate(Schedule::Linear, 2, 7, 1), 1.5f);
  EXPECT_EQ(rate(Schedule::Linear, 2, 12, 1), 1);
  EXPECT_EQ(rate(Schedule::Linear, 2, 15, 1), 1) << "behind the end";
  EXPECT_EQ(rate(Schedule::Linear, 4, 1, 1), 0.5f) << "the warm-up rises from 0";
  EXPECT_FLOAT_EQ(rate(Schedule::Cosine, 2, 7, 1), 1.5f);
  EXPECT_EQ(rate(Schedule::InverseSqrt, 2, 2), 2);
  EXPECT_EQ(rate(Schedule::InverseSqrt, 2, 8), 1);
  EXPECT_EQ(rate(Schedule::InverseSqrt, 2, 32), 0.5f) << "it does not end";
  EXPECT_EQ(rate(Schedule::InverseSqrt, 2, 32, 0.75f), 0.75f);
  EXPECT_EQ(rate(Schedule::InverseSqrt, 0, 4), 1);
  EXPECT_EQ(rate(Schedule::Wsd, 2, 8, 0, 1 / 3.0f), 2);
  EXPECT_EQ(rate(Schedule::Wsd, 2, 10, 0, 1 / 3.0f), 1);
  EXPECT_EQ(rate(Schedule::Wsd, 2, 10, 1, 1 / 3.0f), 1.5f);
  EXPECT_EQ(rate(Schedule::Wsd, 2, 12, 0, 1 / 3.0f), 0);
  EXPECT_EQ(rate(Schedule::Wsd, 10, 11, 0, 0.75f), 1)
      << "it falls after the warm-up at the earliest";
  EXPECT_EQ(rate(Schedule::Wsd, 2, 12, 0, 0), 2) << "it never falls";
}

TEST(KernelsTest, BadStepsAreCountedAndNoUpdate) {
  StepState state{};
  BadGradients bad;
  const auto advance = [&](bool ok) { kernels::advance(&state, &ok, &bad, &state, &bad); };
  advance(true);
  advance(false);
  bad = {3, 5};
  advance(false);
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.updates, 1);
  EXPECT_EQ(state.badSteps, 2);
  EXPECT_EQ(bad.ofStep, 3);
  EXPECT_EQ(bad.ofDeferred, 5);
  advance(true);
  EXPECT_EQ(state.badSteps, 0);
  EXPECT_EQ(bad.ofStep, -1);
  EXPECT_EQ(bad.ofDeferred, -1);
}

TEST(KernelsTest, TheFirstBadGradientIsThatOfAllUpdates) {
  EXPECT_EQ(BadGradients().first(), -1);
  EXPECT_EQ((BadGradients{4, -1}.first()), 4);
  EXPECT_EQ((BadGradients{-1, 4}.first()), 4);
  EXPECT_EQ((BadGradients{4, 2}.first()), 2);
  EXPECT_EQ((BadGradients{2, 4}.first()), 2);
}

TEST(KernelsTest, NonfiniteGradientsAreFoundAndNamed) {
  // Coordinate 1 holds elements 16 to 31: a's end, then b from element 30, which is 14 in the
  // shard.
  std::vector<float> gradient(kLocal, 1.0f);
  std::int32_t firstBad = -1;
  const auto note = [&](int coordinate) {
    kernels::noteBadGradient({&kUnit, coordinate}, gradient.data(), firstBad);
    return firstBad;
  };
  EXPECT_EQ(note(1), -1);
  gradient[14] = float(kInfinity);
  EXPECT_EQ(note(1), 6);
  EXPECT_EQ(note(3), 6) << "an earlier one stays";
  gradient[13] = std::nanf("");
  EXPECT_EQ(note(1), 5);
  firstBad = -1;
  EXPECT_EQ(note(3), -1) << "those are padding";
  gradient[12] = float(-kInfinity);
  EXPECT_EQ(note(3), 7);
}

} // namespace
