#include "runtime/kernels/Kernels.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

using Floats = std::vector<float>;

constexpr std::size_t kExtents[][2] = {{1, 1},  {1, 7},   {3, 1},   {5, 16},
                                       {4, 33}, {2, 768}, {37, 130}};

Floats normal(std::size_t count, std::mt19937 &random, float mean = 0, float deviation = 1) {
  std::normal_distribution<float> distribution(mean, deviation);
  Floats values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

/// What both norms share: xhat = (x - mean) * rstd and its gradients, in double. `centered` says
/// whether there is a mean.
struct Normalized {
  std::vector<double> xhat, rstd, mean, dX, dScale, dBias;

  Normalized(NormRows shape, bool centered, const Floats &x, const Floats &scale, const Floats &dY)
      : xhat(x.size()), rstd(shape.rows), mean(shape.rows), dX(x.size()), dScale(shape.width),
        dBias(shape.width) {
    const auto width = double(shape.width);
    for (std::size_t r = 0; r < shape.rows; ++r) {
      const std::size_t at = r * shape.width;
      double squares = 0, sum = 0, product = 0;
      for (std::size_t j = 0; centered && j < shape.width; ++j)
        mean[r] += double(x[at + j]) / width;
      for (std::size_t j = 0; j < shape.width; ++j)
        squares += std::pow(double(x[at + j]) - mean[r], 2);
      rstd[r] = 1 / std::sqrt(squares / width + shape.epsilon);
      for (std::size_t j = 0; j < shape.width; ++j) {
        xhat[at + j] = (double(x[at + j]) - mean[r]) * rstd[r];
        const double gradient = double(dY[at + j]) * double(scale[j]);
        sum += centered ? gradient / width : 0;
        product += gradient * xhat[at + j] / width;
        dScale[j] += double(dY[at + j]) * xhat[at + j];
        dBias[j] += double(dY[at + j]);
      }
      for (std::size_t j = 0; j < shape.width; ++j)
        dX[at + j] =
            rstd[r] * (double(dY[at + j]) * double(scale[j]) - sum - xhat[at + j] * product);
    }
  }
};

void expectNear(const Floats &got, const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

TEST(RowNormTest, LayerNormFollowsItsFormula) {
  std::mt19937 random(1);
  for (const auto &[rows, width] : kExtents) {
    SCOPED_TRACE(testing::Message() << rows << " x " << width);
    const NormRows shape{rows, width, 1e-5};
    const Floats x = normal(rows * width, random, 3, 2), scale = normal(width, random, 1);
    const Floats bias = normal(width, random), dY = normal(rows * width, random);
    const Normalized expected(shape, true, x, scale, dY);
    Floats y(x.size()), mean(rows), rstd(rows), dX(x.size()), dScale(width), dBias(width);
    kernels::layerNorm(shape, x.data(), scale.data(), bias.data(), y.data(), mean.data(),
                       rstd.data());
    std::vector<double> shifted(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      shifted[i] = expected.xhat[i] * double(scale[i % width]) + double(bias[i % width]);
    expectNear(mean, expected.mean, 1e-6);
    if (width > 1) { // else the variance is zero
      expectNear(rstd, expected.rstd, 1e-6);
      expectNear(y, shifted, 3e-6);
    }
    kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                           dX.data(), dScale.data(), dBias.data());
    expectNear(dX, expected.dX, width == 1 ? 1e-3 : 1e-5);
    expectNear(dScale, expected.dScale, 1e-5);
    expectNear(dBias, expected.dBias, 1e-6);

    Floats inPlace = x;
    kernels::layerNorm(shape, inPlace.data(), scale.data(), bias.data(), inPlace.data(),
                       mean.data(), rstd.data());
    EXPECT_EQ(inPlace, y);
    Floats gradient = dY;
    kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), gradient.data(),
                           gradient.data(), dScale.data(), dBias.data());
    EXPECT_EQ(gradient, dX);
  }
}

TEST(RowNormTest, RmsNormFollowsItsFormula) {
  std::mt19937 random(2);
  for (const auto &[rows, width] : kExtents) {
    SCOPED_TRACE(testing::Message() << rows << " x " << width);
    const NormRows shape{rows, width, 1e-6};
    const Floats x = normal(rows * width, random, 1, 2), scale = normal(width, random, 1);
    const Floats dY = normal(rows * width, random);
    const Normalized expected(shape, false, x, scale, dY);
    Floats y(x.size()), rstd(rows), dX(x.size()), dScale(width);
    kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data());
    std::vector<double> scaled(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      scaled[i] = expected.xhat[i] * double(scale[i % width]);
    expectNear(rstd, expected.rstd, 1e-6);
    expectNear(y, scaled, 3e-6);
    kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), dX.data(),
                         dScale.data());
    expectNear(dX, expected.dX, 1e-5);
    expectNear(dScale, expected.dScale, 1e-5);
  }
}

// In f32 a residual is added to the rounded gradient: the same bits as by an addition of its own. A
// kernel with sums has the other results of one without.
TEST(RowNormTest, GradientsAddAResidualAndTheirRows) {
  std::mt19937 random(3);
  for (const auto &[rows, width] : kExtents)
    for (bool layer : {true, false}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << width << ", layer " << layer);
      const NormRows shape{rows, width, 1e-5};
      const std::size_t n = rows * width;
      const Floats x = normal(n, random), scale = normal(width, random, 1), bias(width),
                   dY = normal(n, random), residual = normal(n, random);
      Floats y(n), mean(rows), rstd(rows), alone(n), plus(n), joined(n);
      Floats sums[3] = {Floats(2 * width), Floats(2 * width), Floats(2 * width)}, added(width);
      if (layer) {
        kernels::layerNorm(shape, x.data(), scale.data(), bias.data(), y.data(), mean.data(),
                           rstd.data());
        kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                               alone.data(), sums[0].data(), sums[0].data() + width);
        kernels::layerNormGradPlus(shape, x.data(), scale.data(), mean.data(), rstd.data(),
                                   dY.data(), residual.data(), plus.data(), sums[1].data(),
                                   sums[1].data() + width);
        kernels::layerNormGradSums(shape, x.data(), scale.data(), mean.data(), rstd.data(),
                                   dY.data(), residual.data(), joined.data(), sums[2].data(),
                                   sums[2].data() + width, added.data());
      } else {
        kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data());
        kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), alone.data(),
                             sums[0].data());
        kernels::rmsNormGradPlus(shape, x.data(), scale.data(), rstd.data(), dY.data(),
                                 residual.data(), plus.data(), sums[1].data());
        kernels::rmsNormGradSums(shape, x.data(), scale.data(), rstd.data(), dY.data(),
                                 residual.data(), joined.data(), sums[2].data(), added.data());
      }
      std::vector<double> expected(width);
      for (std::size_t i = 0; i < n; ++i) {
        alone[i] += residual[i];
        expected[i % width] += double(alone[i]);
      }
      EXPECT_EQ(plus, alone);
      EXPECT_EQ(joined, alone);
      EXPECT_EQ(sums[1], sums[0]);
      EXPECT_EQ(sums[2], sums[0]);
      expectNear(added, expected, 1e-5);
    }
}

/// The gradient of bf16 is that of f32, which is rounded after the residual is added.
TEST(RowNormTest, GradientsAreRoundedOnce) {
  std::mt19937 random(4);
  std::size_t twice = 0, all = 0;
  for (const auto &[rows, width] : kExtents) {
    SCOPED_TRACE(testing::Message() << rows << " x " << width);
    const NormRows shape{rows, width, 1e-5};
    const std::size_t n = rows * width;
    const auto narrow = [](const Floats &values) {
      return std::vector<bf16>(values.begin(), values.end());
    };
    const auto widen = [](const std::vector<bf16> &values) {
      return Floats(values.begin(), values.end());
    };
    const std::vector<bf16> x = narrow(normal(n, random)), scale = narrow(normal(width, random, 1)),
                            dY = narrow(normal(n, random)), residual = narrow(normal(n, random));
    const Floats wideX = widen(x), wideScale = widen(scale), wideDY = widen(dY), bias(width);
    Floats y(n), mean(rows), rstd(rows), exact(n), dScale(width), dBias(width), sums(width);
    std::vector<bf16> plus(n), joined(n), alone(n);
    kernels::layerNorm(shape, wideX.data(), wideScale.data(), bias.data(), y.data(), mean.data(),
                       rstd.data());
    const auto check = [&] {
      for (std::size_t i = 0; i < n; ++i) {
        const bf16 once(exact[i] + float(residual[i]));
        ASSERT_EQ(float(plus[i]), float(once)) << i;
        ASSERT_EQ(float(joined[i]), float(once)) << i;
        const bf16 again(float(alone[i]) + float(residual[i]));
        twice += float(again) != float(once);
      }
      all += n;
    };
    kernels::layerNormGrad(shape, wideX.data(), wideScale.data(), mean.data(), rstd.data(),
                           wideDY.data(), exact.data(), dScale.data(), dBias.data());
    kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                           alone.data(), dScale.data(), dBias.data());
    kernels::layerNormGradPlus(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                               residual.data(), plus.data(), dScale.data(), dBias.data());
    kernels::layerNormGradSums(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                               residual.data(), joined.data(), dScale.data(), dBias.data(),
                               sums.data());
    check();
    kernels::rmsNormGrad(shape, wideX.data(), wideScale.data(), rstd.data(), wideDY.data(),
                         exact.data(), dScale.data());
    kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), alone.data(),
                         dScale.data());
    kernels::rmsNormGradPlus(shape, x.data(), scale.data(), rstd.data(), dY.data(), residual.data(),
                             plus.data(), dScale.data());
    kernels::rmsNormGradSums(shape, x.data(), scale.data(), rstd.data(), dY.data(), residual.data(),
                             joined.data(), dScale.data(), sums.data());
    check();
  }
  RecordProperty("twice", std::to_string(twice) + " of " + std::to_string(all));
  EXPECT_GT(twice, 0u); // a second rounding would be seen
}

TEST(RowNormTest, WithoutRowsGradientsAreZero) {
  Floats dScale(3, 7.0f), dBias(3, 7.0f);
  const Floats scale(3, 1.0f);
  kernels::layerNormGrad<float>({0, 3, 1e-5}, nullptr, scale.data(), nullptr, nullptr, nullptr,
                                nullptr, dScale.data(), dBias.data());
  EXPECT_EQ(dScale, Floats(3));
  EXPECT_EQ(dBias, Floats(3));
}

TEST(SoftmaxTest, FollowsItsFormula) {
  std::mt19937 random(3);
  for (const auto &[rows, width] : kExtents) {
    Floats x = normal(rows * width, random, 200, 10), y(x.size());
    kernels::softmax({rows, width}, x.data(), y.data());
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t j = 0; j < width; ++j)
        sum += std::exp(double(x[r * width + j]) - 200);
      for (std::size_t j = 0; j < width; ++j)
        ASSERT_NEAR(y[r * width + j], std::exp(double(x[r * width + j]) - 200) / sum, 1e-6);
    }
    kernels::softmax({rows, width}, x.data(), x.data());
    EXPECT_EQ(x, y) << "in place";
  }
}

TEST(EmbeddingTest, LooksUpRowsAndAddsTheirGradientsInOrder) {
  std::mt19937 random(4);
  for (const std::size_t width : {1, 5, 64}) {
    const EmbeddingShape shape{50, 7, width};
    const Floats table = normal(7 * width, random), dOut = normal(50 * width, random);
    std::vector<std::int64_t> ids(50);
    for (std::int64_t &id : ids)
      id = std::int64_t(random() % 6); // one row is named by none
    const std::vector<std::int32_t> narrow(ids.begin(), ids.end());
    Floats out(50 * width), same(50 * width), dTable(7 * width, NAN), expected(7 * width);
    kernels::embedding(shape, table.data(), ids.data(), out.data());
    kernels::embedding(shape, table.data(), narrow.data(), same.data());
    kernels::embeddingGrad(shape, narrow.data(), dOut.data(), dTable.data());
    for (std::size_t i = 0; i < 50; ++i)
      for (std::size_t j = 0; j < width; ++j) {
        const std::size_t row = std::size_t(ids[i]) * width + j;
        EXPECT_EQ(out[i * width + j], table[row]);
        expected[row] += dOut[i * width + j];
      }
    EXPECT_EQ(out, same);
    EXPECT_EQ(dTable, expected);
  }
}

TEST(EmbeddingTest, ClearsUnusedRowsOfALargeTable) {
  const EmbeddingShape shape{3, 40000, 33}; // more than a streaming store's least
  const std::int32_t ids[] = {39998, 7, 39998};
  const Floats dOut(3 * 33, 1.5f);
  Floats dTable(shape.vocabulary * shape.width, NAN);
  kernels::embeddingGrad(shape, ids, dOut.data(), dTable.data());
  for (std::size_t i = 0; i < dTable.size(); ++i)
    ASSERT_EQ(dTable[i], i / 33 == 7 ? 1.5f : i / 33 == 39998 ? 3.0f : 0.0f) << i;
}

TEST(EmbeddingTest, NamesAnIdOutOfRange) {
  const Floats table(6);
  Floats out(4);
  const std::int32_t ids[] = {2, 3};
  EXPECT_EQ(
      messageOf([&] { kernels::embedding({2, 3, 2}, table.data(), ids, out.data()); }),
      "id 1 of an embedding is 3, expected 0 to 2; correct the data or the model's vocabulary");
  const std::int64_t negative[] = {-1, 0};
  EXPECT_NE(messageOf([&] {
              kernels::embedding({2, 3, 2}, table.data(), negative, out.data());
            }).find("id 0 of an embedding is -1"),
            std::string::npos);
}

TEST(RopeTest, RotatesPairsByTheirPositions) {
  std::mt19937 random(5);
  for (const auto &[blocks, positions, inner, width] : {std::array<std::size_t, 4>{1, 1, 1, 2},
                                                        {3, 5, 1, 6},
                                                        {2, 300, 1, 64},
                                                        {1, 7, 4, 64},
                                                        {2, 9, 3, 34}}) {
    RopeShape shape{blocks, positions, inner, width, 10000, false};
    const Floats x = normal(blocks * positions * inner * width, random);
    Floats y(x.size());
    kernels::rope(shape, x.data(), y.data());
    for (std::size_t row = 0; row < blocks * positions * inner; ++row)
      for (std::size_t i = 0; i < width / 2; ++i) {
        const double angle =
            double(row / inner % positions) * std::pow(10000.0, -2.0 * double(i) / double(width));
        const double low = x[row * width + i], high = x[row * width + i + width / 2];
        ASSERT_NEAR(y[row * width + i], low * std::cos(angle) - high * std::sin(angle), 1e-6);
        ASSERT_NEAR(y[row * width + i + width / 2], high * std::cos(angle) + low * std::sin(angle),
                    1e-6);
      }
    shape.inverse = true;
    kernels::rope(shape, y.data(), y.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], x[i], 1e-6) << "turned back, in place";
  }
}

TEST(RopeTest, ThetaMatters) {
  const Floats x{1, 1, 1, 1, 1, 1, 1, 1};
  Floats a(8), b(8);
  kernels::rope({1, 2, 1, 4, 10000, false}, x.data(), a.data());
  kernels::rope({1, 2, 1, 4, 500000, false}, x.data(), b.data());
  EXPECT_NE(a, b);
}

// Rates in full, in part and divided, as they grow with the index or with the rate of the pair; and
// the table of one scaling is not that of another.
TEST(RopeTest, ScalesRatesAndResults) {
  std::mt19937 random(6);
  RopeShape shape{2, 40, 3, 16, 100, false};
  const Floats x = normal(2 * 40 * 3 * 16, random);
  for (auto [ramp, from, to] : {std::tuple(RopeRamp::None, 0.0, 0.0),
                                {RopeRamp::Index, 5.0, 2.0},
                                {RopeRamp::Rate, 0.03, 0.4}}) {
    shape.magnitude = 1.25, shape.factor = 4, shape.ramp = ramp, shape.from = from, shape.to = to;
    shape.inverse = false;
    Floats y(x.size());
    kernels::rope(shape, x.data(), y.data());
    int kept = 0, divided = 0;
    for (std::size_t row = 0; row < x.size() / 16; ++row)
      for (std::size_t i = 0; i < 8; ++i) {
        const double whole = std::pow(100.0, -double(i) / 8);
        double share = 0;
        if (ramp == RopeRamp::Index)
          share = i <= 2 ? 1 : i >= 5 ? 0 : (5 - double(i)) / 3;
        if (ramp == RopeRamp::Rate)
          share = whole >= 0.4 ? 1 : whole <= 0.03 ? 0 : (whole - 0.03) / 0.37;
        kept += share == 1, divided += share == 0;
        const double angle = double(row / 3 % 40) * (share * whole + (1 - share) * whole / 4);
        const double low = x[row * 16 + i], high = x[row * 16 + i + 8];
        ASSERT_NEAR(y[row * 16 + i], 1.25 * (low * std::cos(angle) - high * std::sin(angle)), 2e-6);
        ASSERT_NEAR(y[row * 16 + i + 8], 1.25 * (high * std::cos(angle) + low * std::sin(angle)),
                    2e-6);
      }
    EXPECT_TRUE(divided && (kept || ramp == RopeRamp::None));
    shape.inverse = true;
    kernels::rope(shape, y.data(), y.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], 1.25 * 1.25 * x[i], 3e-6) << "the transpose, in place";
  }
}

/// The sums of `shape` in double.
std::vector<double> scanned(const ScanShape &shape, const Floats &x) {
  std::vector<double> y(x.size());
  for (std::size_t o = 0; o < shape.outer; ++o)
    for (std::size_t line = 0; line < shape.inner; ++line) {
      double sum = 0;
      for (std::size_t i = 0; i < shape.size; ++i) {
        const std::size_t place = shape.reverse ? shape.size - 1 - i : i;
        const std::size_t at = (o * shape.size + place) * shape.inner + line;
        y[at] = shape.exclusive ? sum : sum + double(x[at]);
        sum += double(x[at]);
      }
    }
  return y;
}

TEST(ScanSumTest, AddsUpEachLine) {
  std::mt19937 random(6);
  for (const auto &[outer, size, inner] : {std::array<std::size_t, 3>{1, 1, 1},
                                           {3, 5, 1},
                                           {2, 7, 3},
                                           {1, 40, 300},
                                           {2, 3, 257},
                                           {4, 1000, 1},
                                           {0, 3, 2},
                                           {2, 0, 3}})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << outer << " x " << size << " x " << inner << ", " << exclusive << reverse);
        const ScanShape shape{outer, size, inner, exclusive, reverse};
        const Floats x = normal(outer * size * inner, random);
        Floats y(x.size());
        kernels::scan_sum(shape, x.data(), y.data());
        expectNear(y, scanned(shape, x), 2e-5);
      }
}

/// By its definition: from each position back to where the sequence ends.
template <class Id>
std::vector<std::int32_t> positionsSince(const SequenceShape &shape, const std::vector<Id> &x) {
  std::vector<std::int32_t> since;
  for (std::size_t at = 0; at < x.size(); ++at) {
    const std::size_t t = at % shape.positions;
    auto endsAt = [&](std::size_t s) {
      bool is = s + 1 >= shape.length;
      for (std::size_t k = 0; is && k < shape.length; ++k)
        is = x[at - t + s - k] == Id(shape.sequence[shape.length - 1 - k]);
      return is;
    };
    std::size_t ago = 0, first = shape.documents ? 1 : 0; // of the last end that may count
    while (first + ago <= t && !endsAt(t - first - ago))
      ++ago;
    since.push_back(std::int32_t(ago));
  }
  return since;
}

template <class Id> void expectPositionsSince() {
  std::mt19937 random(7);
  for (const auto &[rows, positions] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {3, 2}, {2, 40}, {5, 33}, {0, 3}, {2, 0}})
    for (std::size_t length : {1, 2, 3, 16})
      for (bool documents : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << positions << ", " << length);
        SequenceShape shape{rows, positions, documents, length, {}};
        for (std::size_t k = 0; k < length; ++k)
          shape.sequence[k] = std::int64_t(random() % 2);
        std::vector<Id> x(rows * positions);
        for (Id &token : x)
          token = Id(random() % 2);
        std::vector<std::int32_t> since(x.size(), -1);
        kernels::positionsSince(shape, x.data(), since.data());
        EXPECT_EQ(since, positionsSince(shape, x));
      }
}

TEST(PositionsSinceTest, IsTheDistanceFromTheLastEnd) {
  expectPositionsSince<std::int32_t>();
  expectPositionsSince<std::int64_t>();
}

} // namespace
