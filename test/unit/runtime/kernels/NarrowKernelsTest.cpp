// Kernels on bf16 do what those on float do and round once: each is compared with the float kernel
// on the same numbers.

#include "runtime/kernels/Kernels.h"
#include "runtime/numerics/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

using Floats = std::vector<float>;
using Narrows = std::vector<bf16>;

/// The same numbers in both types.
struct Both {
  Floats wide;
  Narrows narrow;

  explicit Both(std::size_t count) : wide(count, NAN), narrow(count, bf16(NAN)) {}
  Both(std::size_t count, std::mt19937 &random, float mean = 0, float deviation = 1) : Both(count) {
    std::normal_distribution<float> distribution(mean, deviation);
    for (std::size_t i = 0; i < count; ++i) {
      narrow[i] = distribution(random);
      wide[i] = narrow[i];
    }
  }
};

/// Half a unit in the last place of bf16, and what sums in another order make of it.
void expectRounded(const Both &values, double slack = 0) {
  for (std::size_t i = 0; i < values.wide.size(); ++i) {
    const double wide = values.wide[i], narrow = values.narrow[i];
    ASSERT_LE(std::abs(narrow - wide), std::abs(wide) * 0x1.02p-8 + slack + 1e-38) << i;
  }
}

void expectNear(const Floats &got, const Floats &expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << i;
}

constexpr std::size_t kExtents[][2] = {{1, 1}, {3, 7}, {5, 16}, {4, 33}, {2, 768}, {37, 130}};

TEST(NarrowKernelsTest, Norms) {
  std::mt19937 random(1);
  for (const auto &[rows, width] : kExtents) {
    const NormRows shape{rows, width, 1e-5};
    const std::size_t count = rows * width;
    const Both x(count, random, 1, 2), scale(width, random, 1), bias(width, random);
    const Both dY(count, random);
    Both y(count), dX(count);
    Floats mean(rows), rstd(rows), sameMean(rows), sameRstd(rows);
    Floats dScale(width), dBias(width), sameScale(width), sameBias(width);
    kernels::layerNorm(shape, x.wide.data(), scale.wide.data(), bias.wide.data(), y.wide.data(),
                       mean.data(), rstd.data());
    kernels::layerNorm(shape, x.narrow.data(), scale.narrow.data(), bias.narrow.data(),
                       y.narrow.data(), sameMean.data(), sameRstd.data());
    expectRounded(y);
    expectNear(sameMean, mean);
    expectNear(sameRstd, rstd);
    kernels::layerNormGrad(shape, x.wide.data(), scale.wide.data(), mean.data(), rstd.data(),
                           dY.wide.data(), dX.wide.data(), dScale.data(), dBias.data());
    kernels::layerNormGrad(shape, x.narrow.data(), scale.narrow.data(), mean.data(), rstd.data(),
                           dY.narrow.data(), dX.narrow.data(), sameScale.data(), sameBias.data());
    expectRounded(dX, 1e-6 * double(rstd[0]));
    expectNear(sameScale, dScale);
    expectNear(sameBias, dBias);

    kernels::rmsNorm(shape, x.wide.data(), scale.wide.data(), y.wide.data(), rstd.data());
    kernels::rmsNorm(shape, x.narrow.data(), scale.narrow.data(), y.narrow.data(), sameRstd.data());
    expectRounded(y);
    expectNear(sameRstd, rstd);
    kernels::rmsNormGrad(shape, x.wide.data(), scale.wide.data(), rstd.data(), dY.wide.data(),
                         dX.wide.data(), dScale.data());
    kernels::rmsNormGrad(shape, x.narrow.data(), scale.narrow.data(), rstd.data(), dY.narrow.data(),
                         dX.narrow.data(), sameScale.data());
    expectRounded(dX, 1e-6 * double(rstd[0]));
    expectNear(sameScale, dScale);
  }
}

TEST(NarrowKernelsTest, Softmax) {
  std::mt19937 random(2);
  for (const auto &[rows, width] : kExtents) {
    const Both x(rows * width, random, 20, 5);
    Both y(rows * width);
    kernels::softmax({rows, width}, x.wide.data(), y.wide.data());
    kernels::softmax({rows, width}, x.narrow.data(), y.narrow.data());
    expectRounded(y);
    Narrows inPlace = x.narrow;
    kernels::softmax({rows, width}, inPlace.data(), inPlace.data());
    for (std::size_t i = 0; i < inPlace.size(); ++i)
      ASSERT_EQ(inPlace[i].bits, y.narrow[i].bits);
  }
}

TEST(NarrowKernelsTest, CrossEntropy) {
  std::mt19937 random(3);
  for (const auto &[rows, classes] : kExtents) {
    const Both logits(rows * classes, random, 3, 4);
    Both gradients(rows * classes);
    std::vector<std::int32_t> labels(rows);
    for (auto &label : labels)
      label = std::int32_t(random() % classes);
    const Floats upstream(rows, 0.37f);
    Floats losses(rows), sums(rows), sameLosses(rows), sameSums(rows);
    kernels::crossEntropy({rows, classes}, logits.wide.data(), labels.data(), losses.data(),
                          sums.data());
    kernels::crossEntropy({rows, classes}, logits.narrow.data(), labels.data(), sameLosses.data(),
                          sameSums.data());
    expectNear(sameLosses, losses);
    expectNear(sameSums, sums);
    kernels::crossEntropyGrad({rows, classes}, logits.wide.data(), labels.data(), sums.data(),
                              upstream.data(), gradients.wide.data());
    kernels::crossEntropyGrad({rows, classes}, logits.narrow.data(), labels.data(), sums.data(),
                              upstream.data(), gradients.narrow.data());
    expectRounded(gradients);
    Narrows inPlace = logits.narrow;
    kernels::crossEntropyGrad({rows, classes}, inPlace.data(), labels.data(), sums.data(),
                              upstream.data(), inPlace.data());
    for (std::size_t i = 0; i < inPlace.size(); ++i)
      ASSERT_EQ(inPlace[i].bits, gradients.narrow[i].bits);
  }
}

TEST(NarrowKernelsTest, Embedding) {
  std::mt19937 random(4);
  for (const std::size_t width : {1, 5, 64, 300}) {
    const EmbeddingShape shape{50, 9, width};
    const Both table(9 * width, random), dOut(50 * width, random);
    Both out(50 * width), dTable(9 * width);
    Floats sums(9 * width, NAN);
    std::vector<std::int64_t> ids(50);
    for (auto &id : ids)
      id = std::int64_t(random() % 8); // one row is named by none
    kernels::embedding(shape, table.wide.data(), ids.data(), out.wide.data());
    kernels::embedding(shape, table.narrow.data(), ids.data(), out.narrow.data());
    for (std::size_t i = 0; i < out.wide.size(); ++i)
      ASSERT_EQ(out.wide[i], out.narrow[i]);
    kernels::embeddingGrad(shape, ids.data(), dOut.wide.data(), dTable.wide.data());
    kernels::embeddingGrad(shape, ids.data(), dOut.narrow.data(), dTable.narrow.data());
    kernels::embeddingGrad(shape, ids.data(), dOut.narrow.data(), sums.data());
    expectRounded(dTable);
    EXPECT_EQ(sums, dTable.wide);
  }
}

TEST(NarrowKernelsTest, ScanSum) {
  std::mt19937 random(6);
  for (std::size_t inner : {1, 5}) {
    const Both x(3 * 40 * inner, random);
    Both y(x.wide.size());
    kernels::scan_sum({3, 40, inner, false, true}, x.wide.data(), y.wide.data());
    kernels::scan_sum({3, 40, inner, false, true}, x.narrow.data(), y.narrow.data());
    expectRounded(y);
  }
}

TEST(NarrowKernelsTest, RopeAndDropout) {
  std::mt19937 random(5);
  const Both x(2 * 9 * 34, random);
  Both y(x.wide.size());
  kernels::rope({2, 9, 1, 34, 10000, false}, x.wide.data(), y.wide.data());
  kernels::rope({2, 9, 1, 34, 10000, false}, x.narrow.data(), y.narrow.data());
  expectRounded(y);
  StepState state{};
  state.seed = 7;
  const DropoutExtent extents[] = {{18, 40}, {34, 1}};
  kernels::dropout(0.3, hashName("drop"), 5, extents, 2, state, x.wide.data(), y.wide.data());
  kernels::dropout(0.3, hashName("drop"), 5, extents, 2, state, x.narrow.data(), y.narrow.data());
  expectRounded(y);
  EXPECT_GT(std::count(y.wide.begin(), y.wide.end(), 0.0f), 100);
}

TEST(NarrowKernelsTest, Parts) {
  std::mt19937 random(6);
  const Both whole(3 * 20, random);
  Both piece(3 * 7), back(3 * 20);
  kernels::slice({3, 20, 5, 7}, whole.wide.data(), piece.wide.data());
  kernels::slice({3, 20, 5, 7}, whole.narrow.data(), piece.narrow.data());
  kernels::pad({3, 20, 5, 7}, piece.wide.data(), back.wide.data());
  kernels::pad({3, 20, 5, 7}, piece.narrow.data(), back.narrow.data());
  for (const Both *both : {&piece, &back})
    for (std::size_t i = 0; i < both->wide.size(); ++i)
      ASSERT_EQ(both->wide[i], both->narrow[i]);
}

/// The largest difference, relative to the largest number.
double difference(const Both &values) {
  double worst = 0, size = 0;
  for (std::size_t i = 0; i < values.wide.size(); ++i) {
    const double distance = std::abs(double(values.wide[i]) - double(values.narrow[i]));
    worst = distance <= worst ? worst : distance; // a NaN stays
    size = std::max(size, std::abs(double(values.wide[i])));
  }
  return worst / size;
}

TEST(NarrowKernelsTest, Attention) {
  std::mt19937 random(7);
  for (const AttentionShape &sizes : {AttentionShape{1, 1, 1, 1, 1, 1, 1.0f, false},
                                      {2, 3, 3, 5, 5, 7, 0.3f, true},
                                      {1, 4, 2, 65, 129, 33, 0.17f, true},
                                      {2, 2, 1, 130, 130, 64, 0.125f, true},
                                      {1, 2, 2, 63, 300, 64, 0.125f, false}}) {
    const AttentionShape s = rowMajor(sizes);
    SCOPED_TRACE(testing::Message() << s.queries << " queries, " << s.keys << " keys");
    const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries;
    const std::size_t queries = rows * s.width,
                      keys = std::size_t(s.batch) * s.groups * s.keys * s.width;
    const Both q(queries, random), k(keys, random), v(keys, random), dOut(queries, random);
    Both out(queries), dQ(queries), dK(keys), dV(keys);
    Floats sums(rows), sameSums(rows);
    kernels::attention(s, q.wide.data(), k.wide.data(), v.wide.data(), nullptr, nullptr,
                       out.wide.data(), sums.data());
    kernels::attention(s, q.narrow.data(), k.narrow.data(), v.narrow.data(), nullptr, nullptr,
                       out.narrow.data(), sameSums.data());
    EXPECT_LT(difference(out), 0x1p-7);
    for (std::size_t i = 0; i < rows; ++i)
      ASSERT_NEAR(sums[i], sameSums[i], 1e-5);
    // The same output for both, so that only the gradient's own rounding is compared.
    for (std::size_t i = 0; i < queries; ++i)
      out.wide[i] = out.narrow[i];
    kernels::attentionGrad(s, q.wide.data(), k.wide.data(), v.wide.data(), nullptr, nullptr,
                           out.wide.data(), sums.data(), dOut.wide.data(), dQ.wide.data(),
                           dK.wide.data(), dV.wide.data());
    kernels::attentionGrad(s, q.narrow.data(), k.narrow.data(), v.narrow.data(), nullptr, nullptr,
                           out.narrow.data(), sums.data(), dOut.narrow.data(), dQ.narrow.data(),
                           dK.narrow.data(), dV.narrow.data());
    EXPECT_LT(difference(dV), 0x1p-7);
    if (s.keys > 1) { // else the scores have no gradient
      EXPECT_LT(difference(dQ), 0x1p-6);
      EXPECT_LT(difference(dK), 0x1p-6);
    }
    Narrows again(keys);
    kernels::attentionGrad(s, q.narrow.data(), k.narrow.data(), v.narrow.data(), nullptr, nullptr,
                           out.narrow.data(), sums.data(), dOut.narrow.data(), dQ.narrow.data(),
                           again.data(), dV.narrow.data());
    for (std::size_t i = 0; i < keys; ++i)
      ASSERT_EQ(again[i].bits, dK.narrow[i].bits);
  }
}

} // namespace
