#include "runtime/device/Work.h"
#include "runtime/kernels/F32MicroKernel.h"
#include "runtime/kernels/Kernels.h"
#include "test/unit/runtime/kernels/AttentionReference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

TEST(AttentionTest, FollowsItsFormulaOnShapesThatDoNotFitBlocks) {
  for (const bool causal : {false, true}) {
    compare({1, 1, 1, 1, 1, 1, 1.0f, causal}, 1);
    compare({1, 1, 1, 1, 1, 16, 0.25f, causal}, 1);
    compare({2, 3, 3, 5, 5, 7, 0.3f, causal}, 2);
    compare({1, 2, 1, 64, 128, 32, 0.15f, causal}, 3);
    compare({1, 1, 1, 65, 129, 33, 0.1f, causal}, 4);
    compare({2, 2, 2, 130, 130, 64, 0.125f, causal}, 5);
    compare({1, 1, 1, 63, 300, 17, 0.2f, causal}, 6);
  }
}

TEST(AttentionTest, FollowsItsFormulaOnRandomShapes) {
  std::mt19937 random(7);
  const auto upTo = [&](std::uint32_t most) { return std::uint32_t(1 + random() % most); };
  for (unsigned i = 0; i < 40; ++i) {
    const std::uint32_t groups = upTo(3), width = upTo(70);
    compare({upTo(3), groups * upTo(3), groups, upTo(150), upTo(280), width,
             1 / std::sqrt(float(width)), random() % 2 == 0},
            i);
  }
}

TEST(AttentionTest, AWindowHidesOlderKeys) {
  for (const std::uint32_t window : {2, 3, 16, 31, 64, 127, 200, 1000}) {
    compare(optional({1, 2, 1, 300, 300, 16, 0.25f, true}, window), window);
    compare(optional({2, 1, 1, 5, 280, 7, 0.3f, true}, window), window);
    compare(optional({1, 1, 1, 140, 129, 33, 0.2f, true}, window), window);
  }
}

TEST(AttentionTest, FlopsAreThoseOfThePairsThatAreSeen) {
  for (const std::uint32_t window : {0, 1, 7, 30, 90, 200})
    for (const auto &[queries, keys] : {std::pair(30u, 30u), {1u, 60u}, {25u, 90u}}) {
      const AttentionShape s = optional({2, 3, 1, queries, keys, 16, 0.25f, true}, window);
      std::size_t pairs = 0;
      for (std::size_t query = 0; query < queries; ++query)
        pairs += seenBy(s, {}, 0, query).size();
      EXPECT_EQ(flopsOf(s), 4.0 * 16 * 2 * 3 * double(pairs)) << window << " of " << keys;
      for (const std::int32_t offset : {-100, -40, -3, 20, 100}) {
        const AttentionShape other = moved(s, offset);
        pairs = 0;
        for (std::size_t query = 0; query < queries; ++query)
          pairs += seenBy(other, {}, 0, query).size();
        EXPECT_EQ(flopsOf(other), 4.0 * 16 * 2 * 3 * double(pairs)) << window << " at " << offset;
      }
    }
}

// Queries before their keys, among them and behind them, as those of ranks with parts of a
// sequence.
TEST(AttentionTest, QueriesAreWhereTheirOffsetSays) {
  for (const std::int32_t offset : {-200, -70, -5, 3, 64, 140, 400})
    for (const std::uint32_t window : {0, 2, 90}) {
      const unsigned seed = window + unsigned(offset);
      compare(moved(optional({1, 2, 1, 70, 140, 16, 0.25f, true}, window), offset), seed);
      compareNarrow(moved(optional({1, 2, 1, 300, 290, 32, 0.15f, true}, window), offset),
                    seed + 1);
    }
  for (const std::int32_t offset : {-230, -100, 0}) {
    compare(moved({2, 2, 1, 70, 300, 16, 0.25f, true}, offset), 61, Documents::InRow,
            Bias::OfHeads);
    compareNarrow(moved(optional({2, 2, 1, 70, 300, 32, 0.15f, true}, 50, 2), offset), 62,
                  Documents::Mixed, Bias::Shared);
  }
}

// A sequence on two ranks: of the second's queries the blocks of keys, merged by their sums, are
// attention to all keys, and with the whole sums gradients add up to the whole ones. Of a block
// that no query sees nothing is read.
TEST(AttentionTest, BlocksOfKeysAddUp) {
  const std::uint32_t length = 75, width = 16;
  const AttentionShape whole{1, 1, 1, length, 2 * length, width, 0.25f, true},
      block{1, 1, 1, length, length, width, 0.25f, true};
  std::mt19937 random(63);
  Tensors all = randomTensors(whole, random);
  perform(whole, all);
  const std::size_t half = length * width;
  Tensors blocks[] = {all, all};
  for (std::size_t i = 0; i < 2; ++i) {
    blocks[i].k.assign(all.k.begin() + i * half, all.k.begin() + (i + 1) * half);
    blocks[i].v.assign(all.v.begin() + i * half, all.v.begin() + (i + 1) * half);
    blocks[i].dK.resize(half), blocks[i].dV.resize(half);
    perform(moved(block, i == 0 ? std::int32_t(length) : 0), blocks[i]);
  }
  for (std::size_t row = 0; row < length; ++row) {
    double weights[2], sum = 0;
    for (std::size_t i = 0; i < 2; ++i)
      sum += weights[i] = std::exp(double(blocks[i].logSumExp[row] - all.logSumExp[row]));
    EXPECT_NEAR(sum, 1, 1e-5);
    for (std::size_t d = row * width; d < (row + 1) * width; ++d)
      EXPECT_NEAR(blocks[0].out[d] * weights[0] + blocks[1].out[d] * weights[1], all.out[d], 1e-5);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    Tensors &t = blocks[i];
    kernels::attentionGrad(rowMajor(moved(block, i == 0 ? std::int32_t(length) : 0)), t.q.data(),
                           t.k.data(), t.v.data(), nullptr, nullptr, all.out.data(),
                           all.logSumExp.data(), t.dOut.data(), t.dQ.data(), t.dK.data(),
                           t.dV.data());
    for (std::size_t d = 0; d < half; ++d) {
      EXPECT_NEAR(t.dK[d], all.dK[i * half + d], 1e-4);
      EXPECT_NEAR(t.dV[d], all.dV[i * half + d], 1e-4);
    }
  }
  for (std::size_t d = 0; d < half; ++d)
    EXPECT_NEAR(blocks[0].dQ[d] + blocks[1].dQ[d], all.dQ[d], 1e-4);
  Tensors unseen = blocks[0];
  std::fill(unseen.k.begin(), unseen.k.end(), NAN);
  std::fill(unseen.v.begin(), unseen.v.end(), NAN);
  perform(moved(block, -std::int32_t(length)), unseen);
  for (const Floats &zeros : {unseen.out, unseen.dQ, unseen.dK, unseen.dV})
    for (const float value : zeros)
      ASSERT_EQ(value, 0);
  for (const float sum : unseen.logSumExp)
    ASSERT_EQ(sum, -INFINITY);
}

TEST(AttentionTest, AWindowOfOneKeyIsItsValue) {
  const AttentionShape s = optional({2, 2, 2, 150, 150, 16, 0.25f, true}, 1);
  std::mt19937 random(40);
  Tensors t = randomTensors(s, random);
  perform(s, t);
  for (std::size_t i = 0; i < t.v.size(); ++i) {
    ASSERT_NEAR(t.out[i], t.v[i], 1e-5);
    ASSERT_NEAR(t.dV[i], t.dOut[i], 1e-5);
    ASSERT_NEAR(t.dQ[i], 0, 1e-5);
    ASSERT_NEAR(t.dK[i], 0, 1e-5);
  }
}

TEST(AttentionTest, DocumentsSeeThemselvesAlone) {
  for (const Documents documents : {Documents::InRow, Documents::Mixed}) {
    compare({2, 2, 1, 300, 300, 16, 0.25f, true}, 41, documents);
    compare({3, 1, 1, 70, 200, 7, 0.3f, true}, 42, documents);
    compare({2, 2, 2, 150, 150, 33, 0.2f, false}, 43, documents);
    compare(optional({2, 2, 1, 300, 300, 16, 0.25f, true}, 60, 2), 44, documents);
  }
}

TEST(AttentionTest, ScoresAreCapped) {
  for (const float softcap : {0.5f, 3.0f, 50.0f}) {
    compare(optional({1, 2, 1, 150, 150, 16, 0.25f, true}, 0, softcap), 45);
    compare(optional({2, 1, 1, 33, 40, 7, -0.3f, false}, 0, softcap), 46);
    compare(optional({2, 1, 1, 133, 140, 7, 0.3f, true}, 20, softcap), 47);
  }
}

TEST(AttentionTest, OperandsFollowTheirStrides) {
  std::mt19937 random(21);
  const auto upTo = [&](std::uint32_t most) { return std::uint32_t(1 + random() % most); };
  for (unsigned i = 0; i < 30; ++i) {
    const std::uint32_t groups = upTo(3);
    const AttentionShape sizes{upTo(3),   groups * upTo(2), groups, upTo(80),
                               upTo(150), upTo(40),         0.2f,   random() % 2 == 0};
    Tensors t = randomTensors(sizes, random);
    perform(sizes, t);
    const AttentionPlace q(sizes.batch, sizes.heads, sizes.queries, sizes.width, 1, random);
    const AttentionPlace k(sizes.batch, sizes.groups, sizes.keys, sizes.width, 1, random);
    const AttentionPlace o(sizes.batch, sizes.heads, sizes.queries, sizes.width, 1, random);
    AttentionShape s = sizes;
    s.q = q.strides, s.k = k.strides, s.out = o.strides;
    const Floats atQ = q.scattered(t.q), atK = k.scattered(t.k), atV = k.scattered(t.v),
                 atDOut = o.scattered(t.dOut);
    Floats out(o.count, NAN), dQ(q.count, NAN), dK(k.count, NAN), dV(k.count, NAN);
    Floats sums(t.logSumExp.size(), NAN);
    kernels::attention(s, atQ.data(), atK.data(), atV.data(), nullptr, nullptr, out.data(),
                       sums.data());
    kernels::attentionGrad(s, atQ.data(), atK.data(), atV.data(), nullptr, nullptr, out.data(),
                           sums.data(), atDOut.data(), dQ.data(), dK.data(), dV.data());
    EXPECT_EQ(sums, t.logSumExp);
    EXPECT_EQ(o.gathered(out), t.out);
    EXPECT_EQ(q.gathered(dQ), t.dQ);
    EXPECT_EQ(k.gathered(dK), t.dK);
    EXPECT_EQ(k.gathered(dV), t.dV);
    EXPECT_EQ(o.overwritten(out) + q.overwritten(dQ) + k.overwritten(dK) + k.overwritten(dV), 0u)
        << "numbers between the rows";
  }
}

// As the projection of a transformer leaves them: (batch, positions, 3, heads, width).
TEST(AttentionTest, QueriesKeysAndValuesBesideEachOther) {
  std::mt19937 random(22);
  const AttentionShape sizes{2, 3, 3, 40, 40, 16, 0.25f, true};
  Tensors t = randomTensors(sizes, random);
  perform(sizes, t);
  AttentionShape s = sizes;
  s.part = 3 * 16;
  s.q = s.k = {40 * 3 * s.part, 16, 3 * s.part};
  s.out = {40 * s.part, 16, s.part};
  const auto forEach = [&](auto fn) {
    for (std::size_t b = 0, index = 0; b < 2; ++b)
      for (std::size_t h = 0; h < 3; ++h)
        for (std::size_t r = 0; r < 40; ++r)
          for (std::size_t i = 0; i < 16; ++i, ++index)
            fn(index, b * s.q.batch + h * s.q.head + r * s.q.row + i,
               b * s.out.batch + h * s.out.head + r * s.out.row + i);
  };
  Floats qkv(3 * t.q.size()), dQkv(qkv.size(), NAN), out(t.out.size(), NAN), dOut(t.dOut.size()),
      sums(t.logSumExp.size());
  forEach([&](std::size_t index, std::size_t at, std::size_t atOut) {
    qkv[at] = t.q[index], qkv[at + s.part] = t.k[index], qkv[at + 2 * s.part] = t.v[index];
    dOut[atOut] = t.dOut[index];
  });
  const float *q = qkv.data(), *k = q + s.part, *v = k + s.part;
  float *dQ = dQkv.data(), *dK = dQ + s.part, *dV = dK + s.part;
  kernels::attention(s, q, k, v, nullptr, nullptr, out.data(), sums.data());
  kernels::attentionGrad(s, q, k, v, nullptr, nullptr, out.data(), sums.data(), dOut.data(), dQ, dK,
                         dV);
  forEach([&](std::size_t index, std::size_t at, std::size_t atOut) {
    ASSERT_EQ(out[atOut], t.out[index]);
    ASSERT_EQ(dQ[at], t.dQ[index]);
    ASSERT_EQ(dK[at], t.dK[index]);
    ASSERT_EQ(dV[at], t.dV[index]);
  });
}

TEST(AttentionTest, AQueryWithoutKeysIsZero) {
  // Five queries over two keys: the first three see none.
  const AttentionShape s{1, 1, 1, 5, 2, 4, 0.5f, true};
  std::mt19937 random(8);
  Tensors t = randomTensors(s, random);
  perform(s, t);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(t.out[i], 0);
    EXPECT_EQ(t.dQ[i], 0);
  }
  EXPECT_EQ(t.logSumExp[2], -INFINITY);
  for (float value : t.dK)
    EXPECT_TRUE(std::isfinite(value));
  compare(s, 9);
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
  const AttentionShape s{1, 1, 1, 70, 200, 8, 30.0f, true};
  std::mt19937 random(10);
  Tensors t = randomTensors(s, random);
  perform(s, t);
  for (const Floats *values : {&t.out, &t.logSumExp, &t.dQ, &t.dK, &t.dV})
    for (float value : *values)
      ASSERT_TRUE(std::isfinite(value));
}

TEST(AttentionTest, ANaNShows) {
  const AttentionShape s{1, 1, 1, 20, 20, 8, 0.3f, true};
  std::mt19937 random(11);
  Tensors t = randomTensors(s, random);
  t.q[10 * 8 + 3] = NAN;
  perform(s, t);
  for (std::size_t query = 0; query < 20; ++query)
    EXPECT_EQ(std::isnan(t.out[query * 8]), query == 10) << query;
}

TEST(AttentionTest, OnBf16FollowsItsFormula) {
  for (const bool causal : {false, true}) {
    compareNarrow({1, 1, 1, 1, 1, 1, 1.0f, causal}, 21);
    compareNarrow({2, 3, 3, 5, 5, 7, 0.3f, causal}, 22);
    compareNarrow({1, 4, 2, 256, 256, 64, 0.125f, causal}, 23);
    compareNarrow({1, 1, 1, 600, 600, 64, 0.125f, causal}, 24);
    compareNarrow({1, 2, 1, 300, 777, 80, 0.11f, causal}, 25);
    compareNarrow({1, 1, 1, 40, 33, 128, 0.09f, causal}, 26);
    // Scales that nobody takes, but which have a meaning.
    compareNarrow({1, 1, 1, 70, 300, 16, -0.25f, causal}, 27);
    compareNarrow({1, 1, 1, 70, 300, 16, 0.0f, causal}, 28);
  }
  std::mt19937 random(29);
  const auto upTo = [&](std::uint32_t most) { return std::uint32_t(1 + random() % most); };
  for (unsigned i = 0; i < 12; ++i) {
    const std::uint32_t groups = upTo(3), width = upTo(130);
    compareNarrow({upTo(3), groups * upTo(3), groups, upTo(300), upTo(300), width,
                   1 / std::sqrt(float(width)), random() % 2 == 0},
                  i);
  }
}

TEST(AttentionTest, OnBf16TakesOptions) {
  for (const std::uint32_t window : {1, 20, 64, 300}) {
    compareNarrow(optional({1, 2, 2, 600, 600, 32, 0.15f, true}, window), window);
    compareNarrow(optional({1, 1, 1, 70, 333, 80, 0.11f, true}, window), window);
    compareNarrow(optional({1, 1, 1, 300, 280, 16, -0.25f, true}, window, 4), window);
  }
  for (const Documents documents : {Documents::InRow, Documents::Mixed}) {
    compareNarrow({2, 2, 2, 600, 600, 32, 0.15f, true}, 51, documents);
    compareNarrow({2, 2, 1, 200, 290, 32, 0.15f, true}, 55, documents);
    compareNarrow({2, 1, 1, 70, 333, 20, 0.2f, false}, 52, documents);
    compareNarrow(optional({2, 2, 1, 300, 300, 64, 0.125f, true}, 50, 5), 53, documents);
  }
  for (const float softcap : {0.5f, 50.0f})
    compareNarrow(optional({1, 2, 2, 300, 300, 64, 0.125f, false}, 0, softcap), 54);
}

/// Blocks of keys that a window or documents hide are left out: what is no number there would show,
/// times 0.
template <class Element> void leavesOutBlocks() {
  const std::uint32_t length = 1024, seen = 64;
  for (const bool inWindow : {true, false}) {
    const AttentionShape s =
        optional(rowMajor({1, 1, 1, length, length, 16, 0.25f, true}), inWindow ? seen : 0);
    std::mt19937 random(60);
    Tensors t = randomTensors(s, random);
    if (!inWindow)
      for (std::uint32_t key = 0; key < length; ++key)
        t.ids.push_back(static_cast<std::int32_t>(key / seen));
    const auto elements = [](const Floats &values) {
      return std::vector<Element>(values.begin(), values.end());
    };
    const auto q = elements(t.q), dOut = elements(t.dOut);
    auto k = elements(t.k), v = elements(t.v), out = q, dQ = q, dK = k, dV = v;
    k[0] = v[0] = Element(NAN);
    const std::int32_t *ids = inWindow ? nullptr : t.ids.data();
    kernels::attention(s, q.data(), k.data(), v.data(), nullptr, ids, out.data(),
                       t.logSumExp.data());
    EXPECT_TRUE(std::isnan(float(out[0])));
    for (std::size_t i = length / 2 * 16; i < out.size(); ++i)
      ASSERT_FALSE(std::isnan(float(out[i]))) << i / 16;
    // Of queries that see it, nothing is a number, and so neither is what they add to their keys.
    kernels::attentionGrad(s, q.data(), k.data(), v.data(), nullptr, ids, out.data(),
                           t.logSumExp.data(), dOut.data(), dQ.data(), dK.data(), dV.data());
    EXPECT_TRUE(std::isnan(float(dQ[0])) && std::isnan(float(dK[0])));
    for (std::size_t i = length * 3 / 4 * 16; i < out.size(); ++i)
      ASSERT_FALSE(std::isnan(float(dQ[i])) || std::isnan(float(dK[i])) || std::isnan(float(dV[i])))
          << i / 16;
  }
}

TEST(AttentionTest, LeavesOutBlocks) {
  leavesOutBlocks<float>();
  leavesOutBlocks<bf16>();
}

TEST(TileProductTest, FollowsItsFormula) {
  std::mt19937 random(12);
  for (int i = 0; i < 60; ++i) {
    const std::size_t m = random() % 30, n = random() % 70, k = random() % 20;
    const bool transposed = random() % 2, add = random() % 2;
    const F32MicroKernel shape{m,     n,    k, transposed ? 1 : k + 2, transposed ? m + 3 : 1,
                               n + 1, n + 5};
    const Floats a = normal((m + 3) * (k + 2), random), b = normal(k * (n + 1), random);
    const Floats before = normal(m * (n + 5), random);
    Floats c = before;
    // Exactly as long as the last row: what is read past it shows in a sanitizer.
    const Floats tight(b.begin(), b.end() - (k ? 1 : 0));
    // What is empty has a place in an arena too.
    const float *const place = tight.empty() ? before.data() : tight.data();
    multiply(shape, a.data(), place, c.data(), add);
    for (std::size_t row = 0; row < m; ++row)
      for (std::size_t column = 0; column < n + 5; ++column) {
        double sum = add || column >= n ? double(before[row * (n + 5) + column]) : 0;
        for (std::size_t l = 0; l < k && column < n; ++l)
          sum +=
              double(a[row * shape.aRow + l * shape.aColumn]) * double(b[l * shape.bRow + column]);
        ASSERT_NEAR(c[row * (n + 5) + column], sum, 1e-5);
      }
  }
}

} // namespace
