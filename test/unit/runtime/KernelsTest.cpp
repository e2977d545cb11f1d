#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/StepControl.h"
#include "test/unit/runtime/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A unit of three parameters, of which the middle one is not decayed, cut in four.
constexpr Parameter kMembers[] = {{"a", nullptr, {30}, {30}, 0, Initializer::zeros(), true},
                                  {"b", nullptr, {11}, {11}, 30, Initializer::zeros(), false},
                                  {"c", nullptr, {20}, {20}, 41, Initializer::zeros(), true}};
constexpr std::size_t kTotal = 61, kLocal = 16;
constexpr Storage kUnit{"unit", Layout::Flat, {0}, 0, 0, kTotal, 5, ArenaSpan<float>{0, kLocal},
                        {},     kMembers};

bool decays(std::size_t global) { return global < 30 || global >= 41; }

struct Values {
  std::vector<float> parameter, first, second, gradient;
};

Values randomValues(unsigned seed, int coordinate) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values v;
  for (std::size_t i = 0; i < kLocal; ++i) {
    const bool padding = std::size_t(coordinate) * kLocal + i >= kTotal;
    v.parameter.push_back(padding ? 0 : normal(random));
    v.first.push_back(padding ? 0 : normal(random));
    v.second.push_back(padding ? 0 : std::abs(normal(random)));
    v.gradient.push_back(padding ? 0 : normal(random));
  }
  return v;
}

/// Compares a kernel with `update(p, m, v, g, decay)` in double on every shard.
template <typename Kernel, typename Update>
void compareUpdate(Kernel kernel, Update update, double weightDecay) {
  for (int coordinate = 0; coordinate < 4; ++coordinate) {
    const Values before = randomValues(unsigned(coordinate), coordinate);
    Values after = before;
    kernel(ShardOf{&kUnit, coordinate}, after);
    for (std::size_t i = 0; i < kLocal; ++i) {
      const std::size_t global = std::size_t(coordinate) * kLocal + i;
      double p = before.parameter[i], m = before.first[i], v = before.second[i];
      update(p, m, v, double(before.gradient[i]), decays(global) ? weightDecay : 0.0);
      EXPECT_NEAR(after.parameter[i], p, 2e-6) << coordinate << ' ' << i;
      EXPECT_NEAR(after.first[i], m, 1e-6);
      EXPECT_NEAR(after.second[i], v, 1e-6);
      if (global >= kTotal) {
        EXPECT_EQ(after.parameter[i], 0) << "padding moved";
      }
    }
  }
}

TEST(KernelsTest, SgdFollowsItsFormula) {
  for (const float scale : {1.0f, 0.25f})
    compareUpdate(
        [&](ShardOf shard, Values &v) {
          kernels::sgd(shard, Sgd{0.9f, 0.1f}, v.parameter.data(), v.gradient.data(),
                       v.first.data(), 0.05f, scale == 1 ? nullptr : &scale);
        },
        [&](double &p, double &m, double &, double g, double decay) {
          m = 0.9 * m + (g * scale + decay * p);
          p -= 0.05 * m;
        },
        0.1);
}

TEST(KernelsTest, SgdWithoutMomentumNeedsNoBuffer) {
  compareUpdate(
      [&](ShardOf shard, Values &v) {
        kernels::sgd(shard, Sgd{}, v.parameter.data(), v.gradient.data(), nullptr, 0.05f, nullptr);
      },
      [&](double &p, double &, double &, double g, double) { p -= 0.05 * g; }, 0);
}

/// Adam's update in double; `decoupled` as AdamW has it.
auto adamReference(double scale, double lr, double t, bool decoupled) {
  return [=](double &p, double &m, double &v, double g, double decay) {
    g *= scale;
    if (decoupled)
      p -= lr * decay * p;
    else
      g += decay * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    const double fixedM = m / (1 - std::pow(0.9, t)), fixedV = v / (1 - std::pow(0.99, t));
    p -= lr * fixedM / (std::sqrt(fixedV) + 1e-8);
  };
}

TEST(KernelsTest, AdamAndAdamWFollowTheirFormulas) {
  const Adam options{0.9f, 0.99f, 1e-8f, 0.1f};
  for (const float scale : {1.0f, 0.25f})
    for (const int t : {1, 2, 1000}) {
      const float *factor = scale == 1 ? nullptr : &scale;
      compareUpdate(
          [&](ShardOf shard, Values &v) {
            kernels::adamw(shard, options, v.parameter.data(), v.gradient.data(), v.first.data(),
                           v.second.data(), 0.05f, factor, t);
          },
          adamReference(scale, 0.05, t, true), 0.1);
      compareUpdate(
          [&](ShardOf shard, Values &v) {
            kernels::adam(shard, options, v.parameter.data(), v.gradient.data(), v.first.data(),
                          v.second.data(), 0.05f, factor, t);
          },
          adamReference(scale, 0.05, t, false), 0.1);
    }
}

TEST(KernelsTest, EpsilonZeroLeavesAnElementWithoutMomentsAsItIs) {
  const std::size_t count = 3;
  for (const bool decoupled : {false, true}) {
    Values v = randomValues(0, 0);
    const Values before = v;
    std::fill_n(v.first.begin(), count, 0.0f);
    std::fill_n(v.second.begin(), count, 0.0f);
    std::fill_n(v.gradient.begin(), count, 0.0f);
    const auto update = decoupled ? kernels::adamw : kernels::adam;
    update({&kUnit, 0}, Adam{0.9f, 0.99f, 0.0f, 0.0f}, v.parameter.data(), v.gradient.data(),
           v.first.data(), v.second.data(), 0.05f, nullptr, 1);
    for (std::size_t i = 0; i < kLocal; ++i)
      if (i < count)
        EXPECT_EQ(v.parameter[i], before.parameter[i]) << i;
      else
        EXPECT_TRUE(std::isfinite(v.parameter[i]) && v.parameter[i] != before.parameter[i]) << i;
  }
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
    EXPECT_NEAR(kernels::squareSum(values.data(), count), reference, 1e-12 * reference);
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

TEST(KernelsTest, SchedulesFollowTheirFormulas) {
  StepState state{};
  state.totalSteps = 12;
  state.baseLearningRate = 2;
  const auto rate = [&](Schedule::Kind kind, int warmup, int step) {
    state.step = step - 1;
    return kernels::learningRate({kind, warmup}, state);
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
}

TEST(KernelsTest, BadStepsAreCountedAndNoUpdate) {
  StepState state{};
  BadGradients bad;
  kernels::advance(state, bad, true);
  kernels::advance(state, bad, false);
  bad = {3, 5};
  kernels::advance(state, bad, false);
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.updates, 1);
  EXPECT_EQ(state.badSteps, 2);
  EXPECT_EQ(bad.ofStep, 3);
  EXPECT_EQ(bad.ofDeferred, 5);
  kernels::advance(state, bad, true);
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
