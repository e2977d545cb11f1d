// Kernels of steps that generate text, against their formulas in double: float, and bf16 on the
// numbers that it can hold.

#include "runtime/kernels/Kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

template <class T> class GenerationKernels : public testing::Test {
protected:
  using Values = std::vector<T>;

  Values draw(std::size_t count, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    Values values(count);
    for (T &value : values)
      value = T(normal(random));
    return values;
  }
  std::uint32_t upTo(std::uint32_t most) { return std::uint32_t(1 + random() % most); }
  /// Half a unit in the last place of T, and `slack` for what is added in another order.
  static void expectNear(const Values &got, const std::vector<double> &expected, double slack) {
    ASSERT_EQ(got.size(), expected.size());
    const double relative = sizeof(T) == 2 ? 0x1.02p-8 : 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(double(float(got[i])), expected[i], relative * std::abs(expected[i]) + slack)
          << i;
  }
  std::mt19937 random{1};
};
using Elements = testing::Types<float, bf16>;
TYPED_TEST_SUITE(GenerationKernels, Elements);

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// (batch, heads, queries, width) in the order "b t h d" or "b h t d".
CachedAttentionShape inOrder(CachedAttentionShape shape, bool queriesFirst) {
  const std::size_t width = shape.width, all = std::size_t(shape.heads) * shape.queries * width;
  if (queriesFirst)
    shape.q = {all, width, shape.heads * width};
  else
    shape.q = {all, shape.queries * width, width};
  return shape;
}

template <class T>
std::vector<double> attended(const CachedAttentionShape &s, const std::vector<T> &q,
                             const std::vector<T> &k, const std::vector<T> &v,
                             const std::vector<std::int32_t> &positions) {
  std::vector<double> out(q.size(), NAN);
  for (std::size_t b = 0; b < s.batch; ++b)
    for (std::size_t h = 0; h < s.heads; ++h)
      for (std::size_t t = 0; t < s.queries; ++t) {
        const std::size_t query = b * s.q.batch + h * s.q.head + t * s.q.row;
        const std::size_t group = (b * s.groups + h / (s.heads / s.groups)) * s.keys;
        const std::int64_t own = positions[b * s.queries] + std::int64_t(t);
        std::vector<double> sums(s.width);
        double total = 0;
        for (std::int64_t key = 0; key <= own; ++key) {
          if (s.window && key <= own - std::int64_t(s.window))
            continue;
          const std::size_t at = (group + std::size_t(key)) * s.width;
          double score = 0;
          for (std::size_t i = 0; i < s.width; ++i)
            score += double(float(q[query + i])) * double(float(k[at + i]));
          score *= double(s.scale);
          if (s.softcap > 0)
            score = double(s.softcap) * std::tanh(score / double(s.softcap));
          total += std::exp(score);
          for (std::size_t i = 0; i < s.width; ++i)
            sums[i] += std::exp(score) * double(float(v[at + i]));
        }
        for (std::size_t i = 0; i < s.width; ++i)
          out[query + i] = sums[i] / total;
      }
  return out;
}

TYPED_TEST(GenerationKernels, CachedAttentionFollowsItsFormula) {
  using T = TypeParam;
  for (unsigned i = 0; i < 60; ++i) {
    const std::uint32_t groups = this->upTo(3), keys = this->upTo(70), width = this->upTo(40);
    // One query, a few, and so many that they are computed as blocks.
    const std::uint32_t queries = i % 3 == 0 ? 1 : std::min(keys, this->upTo(i % 3 == 1 ? 7 : 40));
    CachedAttentionShape sizes{this->upTo(2), groups * this->upTo(3),      groups, queries, keys,
                               width,         1 / std::sqrt(float(width)), 0,      0,       {}};
    if (this->random() % 3 == 0)
      sizes.window = this->upTo(keys + 2);
    if (this->random() % 3 == 0)
      sizes.softcap = 0.5f;
    const CachedAttentionShape s = inOrder(sizes, this->random() % 2 == 0);
    SCOPED_TRACE(testing::Message()
                 << "batch " << s.batch << " heads " << s.heads << " groups " << s.groups
                 << " queries " << queries << " keys " << keys << " width " << width << " window "
                 << s.window << " softcap " << s.softcap);
    std::vector<std::int32_t> positions(s.batch * queries);
    for (std::size_t b = 0; b < s.batch; ++b) {
      const std::int32_t first = std::int32_t(this->random() % (keys - queries + 1));
      for (std::size_t t = 0; t < queries; ++t)
        positions[b * queries + t] = first + std::int32_t(t);
    }
    const std::size_t ofKeys = std::size_t(s.batch) * groups * keys * width;
    const auto q = this->draw(std::size_t(s.batch) * s.heads * queries * width, 2),
               k = this->draw(ofKeys), v = this->draw(ofKeys);
    std::vector<T> out(q.size(), T(NAN));
    kernels::cachedAttention(s, q.data(), k.data(), v.data(), positions.data(), out.data());
    // Blocks of bf16 round their probabilities.
    const bool isNarrow = sizeof(T) == 2 && queries >= 8;
    this->expectNear(out, attended(s, q, k, v, positions), isNarrow ? 0x1p-6 : 1e-5);
  }
}

// A step without queries reads no position: there is none.
TYPED_TEST(GenerationKernels, CachedAttentionOfNoQueriesReadsNothing) {
  kernels::cachedAttention<TypeParam>(inOrder({2, 1, 1, 0, 3, 8, 0.3f, 0, 0, {}}, true), nullptr,
                                      nullptr, nullptr, nullptr, nullptr);
}

// What stands after the positions of a query has no part in its result, whatever it is.
TYPED_TEST(GenerationKernels, CachedAttentionReadsNothingBehindItsPosition) {
  for (std::uint32_t queries : {1u, 3u, 12u}) {
    const CachedAttentionShape s = inOrder({1, 2, 1, queries, 30, 8, 0.3f, 0, 0, {}}, true);
    auto q = this->draw(2 * queries * 8), k = this->draw(30 * 8), v = this->draw(30 * 8);
    std::vector<std::int32_t> positions(queries, 10); // the first one counts
    auto out = q, same = q;
    kernels::cachedAttention(s, q.data(), k.data(), v.data(), positions.data(), out.data());
    for (std::size_t i = (10 + queries) * 8; i < k.size(); ++i)
      k[i] = v[i] = TypeParam(NAN);
    kernels::cachedAttention(s, q.data(), k.data(), v.data(), positions.data(), same.data());
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(float(out[i]), float(same[i])) << queries << " queries, " << i;
  }
}

TYPED_TEST(GenerationKernels, CachedAttentionShowsANaN) {
  for (std::uint32_t queries : {2u, 12u}) {
    const CachedAttentionShape s = inOrder({1, 1, 1, queries, 20, 4, 0.3f, 0, 0, {}}, false);
    auto q = this->draw(queries * 4), k = this->draw(20 * 4), out = q;
    k[6 * 4] = TypeParam(NAN); // the own key of the second query, in a block also of the first
    const std::vector<std::int32_t> positions(queries, 5);
    kernels::cachedAttention(s, q.data(), k.data(), k.data(), positions.data(), out.data());
    for (std::size_t t = queries > 2; t < queries; ++t)
      EXPECT_EQ(std::isnan(float(out[t * 4])), t >= 1) << queries << " queries, " << t;
  }
}

// At a position where not every query has a key the kernel is as at the nearest where they have.
TYPED_TEST(GenerationKernels, CachedAttentionStaysWithinItsKeys) {
  for (std::uint32_t queries : {3u, 12u}) {
    const CachedAttentionShape s = inOrder({1, 1, 1, queries, 20, 4, 0.3f, 0, 0, {}}, true);
    const auto q = this->draw(queries * 4), k = this->draw(20 * 4);
    auto at = [&](std::int32_t first) {
      const std::vector<std::int32_t> positions(queries, first);
      auto out = q;
      kernels::cachedAttention(s, q.data(), k.data(), k.data(), positions.data(), out.data());
      return std::vector<float>(out.begin(), out.end());
    };
    const std::int32_t last = 20 - std::int32_t(queries);
    EXPECT_EQ(at(-7), at(0));
    EXPECT_EQ(at(last + 1), at(last));
    EXPECT_EQ(at(1 << 30), at(last));
    EXPECT_NE(at(0), at(last));
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

TYPED_TEST(GenerationKernels, WriteRowsReplacesRows) {
  using T = TypeParam;
  for (const WriteShape &s :
       {WriteShape{1, 1, 1, 1, 1}, WriteShape{2, 3, 9, 4, 5}, WriteShape{3, 1, 40, 17, 64},
        WriteShape{2, 2, 5, 0, 3}, WriteShape{2, 0, 5, 2, 3}, WriteShape{1, 4, 3, 6, 300}}) {
    SCOPED_TRACE(testing::Message() << s.samples << " x " << s.outer << " x " << s.positions
                                    << ", rows " << s.rows << " x " << s.width);
    const auto table = this->draw(s.samples * s.outer * s.positions * s.width);
    const auto rows = this->draw(s.samples * s.outer * s.rows * s.width);
    std::vector<std::int32_t> positions(s.samples * s.rows);
    for (std::int32_t &position : positions) // some outside, some twice
      position = std::int32_t(this->random() % (s.positions + 3)) - 1;
    if (s.rows > 1)
      positions[0] = std::int32_t(s.positions);
    std::vector<T> expected = table, written(table.size(), T(NAN));
    for (std::size_t sample = 0; sample < s.samples; ++sample)
      for (std::size_t outer = 0; outer < s.outer; ++outer)
        for (std::size_t row = 0; row < s.rows; ++row) {
          const std::int64_t to = positions[sample * s.rows + row];
          for (std::size_t i = 0; i < s.width && to >= 0 && to < std::int64_t(s.positions); ++i)
            expected[((sample * s.outer + outer) * s.positions + std::size_t(to)) * s.width + i] =
                rows[((sample * s.outer + outer) * s.rows + row) * s.width + i];
        }
    kernels::writeRows(s, table.data(), rows.data(), positions.data(), written.data());
    for (std::size_t i = 0; i < table.size(); ++i)
      ASSERT_EQ(float(written[i]), float(expected[i])) << i;
  }
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

TYPED_TEST(GenerationKernels, RopeTurnsByGivenPositions) {
  using T = TypeParam;
  // As for dimension 1 of four, for dimension 2, and with blocks that are none.
  for (RopeShape s : {RopeShape{3, 5, 1, 6, 10000, false}, RopeShape{2, 1, 4, 64, 500000, true},
                      RopeShape{6, 4, 1, 34, 10000, false}, RopeShape{8, 3, 2, 16, 100, true},
                      RopeShape{0, 3, 2, 16, 100, true}})
    for (std::size_t repeats : {1, 2})
      for (auto [ramp, from, to] : {std::tuple(RopeRamp::None, 0.0, 0.0),
                                    {RopeRamp::Index, 2.0, 0.5},
                                    {RopeRamp::Rate, 0.03, 0.4}}) {
        if (s.blocks % repeats)
          continue;
        s.repeats = s.blocks ? repeats : 0;
        const bool isScaled = repeats == 2 || ramp != RopeRamp::None;
        s.factor = isScaled ? 4 : 1, s.magnitude = isScaled ? 1.25 : 1;
        s.ramp = ramp, s.from = from, s.to = to;
        SCOPED_TRACE(testing::Message()
                     << s.blocks << " x " << s.positions << " x " << s.inner << " x " << s.width
                     << ", repeats " << repeats << ", ramp " << int(ramp));
        const std::size_t count = s.blocks * s.positions * s.inner * s.width, half = s.width / 2;
        const auto x = this->draw(count);
        std::vector<std::int32_t> positions(s.blocks / repeats * s.positions);
        // Now those of documents in a row, now any.
        const bool areAny = this->random() % 2;
        for (std::int32_t &position : positions)
          position = areAny ? std::int32_t(this->random() % 3000) - 20
                            : std::int32_t(this->random() % s.positions);
        std::vector<T> y(count, T(NAN));
        kernels::ropeAt(s, x.data(), positions.data(), y.data());
        std::vector<double> expected(count);
        for (std::size_t vector = 0; vector < count / s.width; ++vector)
          for (std::size_t i = 0; i < half; ++i) {
            const double whole = std::pow(s.theta, -2 * double(i) / double(s.width));
            double share = ramp == RopeRamp::None    ? 0
                           : ramp == RopeRamp::Index ? (double(i) - from) / (to - from)
                                                     : (whole - from) / (to - from);
            share = std::min(1.0, std::max(0.0, share));
            const std::size_t row = vector / s.inner, sample = row / s.positions / repeats;
            const double angle = (s.inverse ? -1 : 1) *
                                 double(positions[sample * s.positions + row % s.positions]) *
                                 (share * whole + (1 - share) * whole / s.factor);
            const std::size_t at = vector * s.width + i;
            const double low = float(x[at]), high = float(x[at + half]);
            expected[at] = s.magnitude * (low * std::cos(angle) - high * std::sin(angle));
            expected[at + half] = s.magnitude * (high * std::cos(angle) + low * std::sin(angle));
          }
        this->expectNear(y, expected, 2e-6);
      }
}

// 0, 1, 2 and so on are the positions of the other kernel: the same bits.
TYPED_TEST(GenerationKernels, RopeAtItsOwnPositions) {
  RopeShape s{4, 7, 3, 18, 10000, false};
  s.repeats = 2;
  const auto x = this->draw(4 * 7 * 3 * 18);
  std::vector<std::int32_t> positions(2 * 7);
  for (std::size_t i = 0; i < positions.size(); ++i)
    positions[i] = std::int32_t(i % 7);
  auto given = x, own = x;
  kernels::ropeAt(s, x.data(), positions.data(), given.data());
  kernels::rope(s, x.data(), own.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(float(given[i]), float(own[i])) << i;
}

} // namespace
