//===- AttentionReference.h - attention by its formulas ---------*- C++ -*-===//

#ifndef FSDP_TEST_UNIT_RUNTIME_ATTENTIONREFERENCE_H
#define FSDP_TEST_UNIT_RUNTIME_ATTENTIONREFERENCE_H

#include "runtime/kernels/Kernels.h"
#include "test/unit/runtime/kernels/AttentionPlaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace fsdp::rt {

using Floats = std::vector<float>;

inline Floats normal(std::size_t count, std::mt19937 &random, float deviation = 1) {
  std::normal_distribution<float> distribution(0, deviation);
  Floats values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

struct Tensors {
  Floats q, k, v, dOut;              // given
  std::vector<std::int32_t> ids;     // of documents, or none
  Floats bias;                       // or none
  Floats out, logSumExp, dQ, dK, dV; // computed
  Floats dBias;
};

inline Tensors randomTensors(const AttentionShape &s, std::mt19937 &random) {
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries;
  const std::size_t keys = std::size_t(s.batch) * s.groups * s.keys;
  Tensors t;
  t.q = normal(rows * s.width, random, 2);
  t.k = normal(keys * s.width, random, 2);
  t.v = normal(keys * s.width, random);
  t.dOut = normal(rows * s.width, random);
  t.out.resize(rows * s.width, NAN);
  t.logSumExp.resize(rows, NAN);
  t.dQ.resize(rows * s.width, NAN);
  t.dK.resize(keys * s.width, NAN);
  t.dV.resize(keys * s.width, NAN);
  return t;
}

inline void perform(const AttentionShape &sizes, Tensors &t) {
  const AttentionShape s = rowMajor(sizes);
  const float *q = t.q.data(), *k = t.k.data(), *v = t.v.data();
  const float *bias = t.bias.empty() ? nullptr : t.bias.data();
  const std::int32_t *ids = t.ids.empty() ? nullptr : t.ids.data();
  kernels::attention(s, q, k, v, bias, ids, t.out.data(), t.logSumExp.data());
  kernels::attentionGrad(s, q, k, v, bias, ids, t.out.data(), t.logSumExp.data(), t.dOut.data(),
                         t.dQ.data(), t.dK.data(), t.dV.data());
  if (!bias)
    return;
  t.dBias.assign(t.bias.size(), NAN);
  kernels::attentionBiasGrad(s, q, k, v, bias, ids, t.out.data(), t.logSumExp.data(), t.dOut.data(),
                             t.dBias.data());
}

/// The keys that a query sees.
inline std::vector<std::size_t> seenBy(const AttentionShape &s, const Tensors &t, std::size_t batch,
                                       std::size_t query) {
  const auto position = s.positionOf(static_cast<std::int64_t>(query));
  const auto id = [&](std::int64_t key) {
    return t.ids[batch * s.keys + static_cast<std::size_t>(key)];
  };
  std::vector<std::size_t> keys;
  for (std::int64_t key = 0; key < s.keys; ++key)
    if ((!s.causal || key <= position) && (s.window == 0 || key > position - s.window) &&
        (t.ids.empty() || id(key) == id(position)))
      keys.push_back(static_cast<std::size_t>(key));
  return keys;
}

struct Expected {
  std::vector<double> out, logSumExp, dQ, dK, dV, dBias;
};

/// The formulas, in double, one query after another.
inline Expected reference(const AttentionShape &s, const Tensors &t) {
  const std::size_t width = s.width;
  Expected e;
  e.out.resize(t.out.size());
  e.logSumExp.resize(t.logSumExp.size());
  e.dQ.resize(t.dQ.size());
  e.dK.resize(t.dK.size());
  e.dV.resize(t.dV.size());
  e.dBias.resize(t.bias.size());
  const auto dot = [&](const Floats &a, std::size_t i, const Floats &b, std::size_t j) {
    const float *x = &a[i * width], *y = &b[j * width];
    double sums[8] = {}; // of every eighth element: a processor adds them at once
    std::size_t d = 0;
    for (; d + 8 <= width; d += 8)
      for (std::size_t lane = 0; lane < 8; ++lane)
        sums[lane] += double(x[d + lane]) * double(y[d + lane]);
    for (; d < width; ++d)
      sums[0] += double(x[d]) * double(y[d]);
    return std::accumulate(sums, sums + 8, 0.0);
  };
  for (std::size_t b = 0; b < s.batch; ++b)
    for (std::size_t h = 0; h < s.heads; ++h)
      for (std::size_t query = 0; query < s.queries; ++query) {
        const std::size_t row = (b * s.heads + h) * s.queries + query;
        const std::size_t key0 = (b * s.groups + h / (s.heads / s.groups)) * s.keys;
        std::vector<std::size_t> keys = seenBy(s, t, b, query);
        const std::size_t bias0 = h * s.bias + query * s.keys;
        const auto biasOf = [&](std::size_t key) {
          return t.bias.empty() ? 0.0 : double(t.bias[bias0 + key]);
        };
        keys.erase(std::remove_if(keys.begin(), keys.end(),
                                  [&](std::size_t key) { return biasOf(key) == -INFINITY; }),
                   keys.end());
        double shift = keys.empty() ? 0 : -INFINITY; // scores are not lost next to the bias
        for (std::size_t key : keys)
          shift = std::max(shift, biasOf(key));
        std::vector<double> p, slopes;
        double sum = 0, along = 0;
        for (std::size_t key : keys) {
          const double score = double(s.scale) * dot(t.q, row, t.k, key0 + key);
          const double cap = s.softcap != 0 ? std::tanh(score / double(s.softcap)) : 0;
          slopes.push_back(1 - cap * cap);
          sum += p.emplace_back(
              std::exp((s.softcap != 0 ? double(s.softcap) * cap : score) + (biasOf(key) - shift)));
        }
        e.logSumExp[row] = std::log(sum);
        for (std::size_t i = 0; i < p.size(); ++i) {
          p[i] /= sum;
          along += p[i] * dot(t.dOut, row, t.v, key0 + keys[i]);
          for (std::size_t d = 0; d < width; ++d)
            e.out[row * width + d] += p[i] * double(t.v[(key0 + keys[i]) * width + d]);
        }
        for (std::size_t i = 0; i < p.size(); ++i) {
          const std::size_t key = key0 + keys[i];
          const double dWeighed = p[i] * (dot(t.dOut, row, t.v, key) - along);
          const double dScore = double(s.scale) * slopes[i] * dWeighed;
          if (!t.bias.empty())
            e.dBias[bias0 + keys[i]] += dWeighed;
          for (std::size_t d = 0; d < width; ++d) {
            e.dQ[row * width + d] += dScore * double(t.k[key * width + d]);
            e.dK[key * width + d] += dScore * double(t.q[row * width + d]);
            e.dV[key * width + d] += p[i] * double(t.dOut[row * width + d]);
          }
        }
      }
  return e;
}

/// The largest difference, relative to the largest number.
inline double difference(const Floats &got, const std::vector<double> &expected) {
  double worst = 0, size = 0.05;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == float(expected[i]))
      continue; // among them infinities
    const double distance = std::abs(double(got[i]) - expected[i]);
    worst = distance <= worst ? worst : distance; // a NaN stays
    size = std::max(size, std::abs(expected[i]));
  }
  return worst / size;
}

inline testing::Message describe(const AttentionShape &s, Documents documents) {
  return testing::Message() << "batch " << s.batch << " heads " << s.heads << " groups " << s.groups
                            << " queries " << s.queries << " keys " << s.keys << " width "
                            << s.width << " causal " << s.causal << " window " << s.window
                            << " softcap " << s.softcap << " offset " << s.offset << " documents "
                            << static_cast<int>(documents);
}

inline void compare(AttentionShape s, unsigned seed, Documents documents = Documents::None,
                    Bias bias = Bias::None) {
  std::mt19937 random(seed);
  Tensors t = randomTensors(s, random);
  t.ids = randomDocuments(s, documents, random);
  t.bias = randomBias(s, bias, random);
  SCOPED_TRACE(describe(s, documents) << " bias " << t.bias.size() << " every " << s.bias);
  perform(s, t);
  const Expected e = reference(s, t);
  EXPECT_LT(difference(t.out, e.out), 2e-6);
  EXPECT_LT(difference(t.logSumExp, e.logSumExp), 2e-6);
  EXPECT_LT(difference(t.dQ, e.dQ), 3e-5);
  EXPECT_LT(difference(t.dK, e.dK), 3e-5);
  EXPECT_LT(difference(t.dV, e.dV), 1e-5);
  EXPECT_LT(difference(t.dBias, e.dBias), 1e-5);

  Tensors again = t;
  perform(s, again);
  EXPECT_EQ(again.out, t.out);
  EXPECT_EQ(again.dQ, t.dQ);
  EXPECT_EQ(again.dK, t.dK);
  EXPECT_EQ(again.dV, t.dV);
  EXPECT_EQ(again.dBias, t.dBias);
}

/// The shape with a window and a cap of scores.
inline AttentionShape optional(AttentionShape s, std::uint32_t window, float softcap = 0) {
  s.window = window, s.softcap = softcap;
  return s;
}

/// The shape with its queries `offset` keys further on.
inline AttentionShape moved(AttentionShape s, std::int32_t offset) {
  s.offset = offset;
  return s;
}

inline std::vector<bf16> narrowed(const Floats &values) {
  std::vector<bf16> result(values.size());
  convert(values.data(), values.size(), result.data());
  return result;
}

inline Floats widened(const std::vector<bf16> &values) { return {values.begin(), values.end()}; }

/// Attention on bf16 against the formulas on the same numbers in double: off by the rounding of
/// results, and of probabilities and the gradients of scores in between.
inline void compareNarrow(const AttentionShape &sizes, unsigned seed,
                          Documents documents = Documents::None, Bias bias = Bias::None) {
  AttentionShape s = rowMajor(sizes);
  std::mt19937 random(seed);
  Tensors t = randomTensors(s, random);
  t.ids = randomDocuments(s, documents, random);
  t.bias = randomBias(s, bias, random);
  SCOPED_TRACE(describe(s, documents) << " bias " << t.bias.size() << " every " << s.bias);
  const auto q = narrowed(t.q), k = narrowed(t.k), v = narrowed(t.v), dOut = narrowed(t.dOut);
  t.q = widened(q), t.k = widened(k), t.v = widened(v), t.dOut = widened(dOut);
  auto out = narrowed(t.out), dQ = narrowed(t.dQ), dK = narrowed(t.dK), dV = narrowed(t.dV);
  const std::int32_t *ids = t.ids.empty() ? nullptr : t.ids.data();
  float *sums = t.logSumExp.data();
  const float *added = t.bias.empty() ? nullptr : t.bias.data();
  kernels::attention(s, q.data(), k.data(), v.data(), added, ids, out.data(), sums);
  kernels::attentionGrad(s, q.data(), k.data(), v.data(), added, ids, out.data(), sums, dOut.data(),
                         dQ.data(), dK.data(), dV.data());
  if (added) {
    t.dBias.assign(t.bias.size(), NAN);
    kernels::attentionBiasGrad(s, q.data(), k.data(), v.data(), added, ids, out.data(), sums,
                               dOut.data(), t.dBias.data());
  }
  const Expected e = reference(s, t);
  const double rounding = t.bias.empty() ? 0x1p-8 : 0x1p-7; // of larger probabilities
  EXPECT_LT(difference(widened(out), e.out), rounding);
  EXPECT_LT(difference(t.logSumExp, e.logSumExp), 3e-6);
  EXPECT_LT(difference(widened(dQ), e.dQ), 0x1p-6);
  EXPECT_LT(difference(widened(dK), e.dK), 0x1p-6);
  EXPECT_LT(difference(widened(dV), e.dV), rounding);
  // `out`, of which it is made, is rounded.
  EXPECT_LT(difference(t.dBias, e.dBias), 0x1p-6);
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_ATTENTIONREFERENCE_H
