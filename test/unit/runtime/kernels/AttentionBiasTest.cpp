#include "test/unit/runtime/kernels/AttentionReference.h"

using namespace fsdp::rt;

namespace {

TEST(AttentionBiasTest, ABiasIsAddedToScores) {
  for (const Bias bias : {Bias::OfHeads, Bias::Shared, Bias::LargeOfHeads, Bias::LargeShared})
    for (const bool causal : {false, true}) {
      compare({1, 1, 1, 1, 1, 1, 1.0f, causal}, 61, Documents::None, bias);
      compare({2, 3, 3, 5, 5, 7, 0.3f, causal}, 62, Documents::None, bias);
      compare({3, 4, 2, 65, 129, 16, 0.15f, causal}, 63, Documents::None, bias);
      compare({2, 2, 1, 150, 150, 33, -0.2f, causal}, 64, Documents::Mixed, bias);
      compare(optional({2, 2, 2, 150, 260, 8, 0.25f, true}, 40, causal ? 2 : 0), 65,
              Documents::InRow, bias);
      compare(optional({2, 2, 1, 70, 70, 8, 0.25f, causal}, 0, 0.5f), 66, Documents::None, bias);
      // Queries behind all keys, as those of a rank that has padding, and before them.
      for (const std::int32_t offset : {37, -12}) {
        compare(moved({1, 2, 2, 50, 40, 4, 0.5f, true}, offset), 68, Documents::None, bias);
        compare(moved(optional({1, 2, 1, 150, 40, 8, 0.5f, true}, 45), offset), 69, Documents::None,
                bias);
      }
      // Queries that see no key.
      compare({1, 2, 2, 50, 40, 4, 0.5f, causal}, 67, Documents::None, bias);
    }
}

TEST(AttentionBiasTest, OnBf16TakesABias) {
  for (const Bias bias : {Bias::OfHeads, Bias::Shared, Bias::LargeOfHeads, Bias::LargeShared})
    for (const bool causal : {false, true}) {
      compareNarrow({1, 1, 1, 1, 1, 1, 1.0f, causal}, 71, Documents::None, bias);
      compareNarrow({2, 4, 2, 300, 300, 64, 0.125f, causal}, 72, Documents::None, bias);
      compareNarrow({1, 2, 1, 70, 333, 80, -0.11f, causal}, 73, Documents::Mixed, bias);
      compareNarrow({1, 1, 1, 40, 33, 128, 0.0f, causal}, 74, Documents::None, bias);
      compareNarrow(optional({2, 2, 2, 300, 290, 16, 0.25f, true}, 50, causal ? 3 : 0), 75,
                    Documents::None, bias);
      compareNarrow(moved(optional({1, 2, 1, 300, 290, 32, 0.15f, true}, causal ? 0 : 40), 25), 77,
                    Documents::None, bias);
      compareNarrow(optional({1, 2, 1, 130, 140, 32, 0.2f, causal}, 0, 1), 76, Documents::InRow,
                    bias);
    }
}

/// Attention of a head whose bias is 0 but for two numbers: of query 10 `seen`, of key 3, which it
/// sees, and of query 6 `hidden`, of key 8, which is behind it.
template <class Element> void expectNoNumberOfOne(float seen, float hidden) {
  AttentionShape s = rowMajor({1, 1, 1, 20, 20, 16, 0.3f, true});
  std::mt19937 random(80);
  Tensors t = randomTensors(s, random);
  const auto elements = [](const Floats &values) {
    return std::vector<Element>(values.begin(), values.end());
  };
  const auto q = elements(t.q), k = elements(t.k), v = elements(t.v), dOut = elements(t.dOut);
  auto out = q, dQ = q, dK = k, dV = v;
  Floats bias(20 * 20), dBias(bias.size());
  bias[10 * 20 + 3] = seen, bias[6 * 20 + 8] = hidden;
  kernels::attention(s, q.data(), k.data(), v.data(), bias.data(), nullptr, out.data(),
                     t.logSumExp.data());
  kernels::attentionGrad(s, q.data(), k.data(), v.data(), bias.data(), nullptr, out.data(),
                         t.logSumExp.data(), dOut.data(), dQ.data(), dK.data(), dV.data());
  kernels::attentionBiasGrad(s, q.data(), k.data(), v.data(), bias.data(), nullptr, out.data(),
                             t.logSumExp.data(), dOut.data(), dBias.data());
  for (std::size_t query = 0; query < 20; ++query) {
    EXPECT_EQ(std::isnan(float(out[query * 16])), query == 10) << query;
    EXPECT_EQ(std::isnan(float(dQ[query * 16])), query == 10) << query;
    EXPECT_EQ(std::isnan(dBias[query * 20]), query == 10) << query;
    EXPECT_EQ(std::isnan(t.logSumExp[query]), query == 10) << query;
  }
}

TEST(AttentionBiasTest, NoNumberShowsWhereItIsSeen) {
  for (const float number : {float(NAN), INFINITY})
    for (const float hidden : {float(NAN), INFINITY, 3e38f}) {
      SCOPED_TRACE(testing::Message() << number << ", hidden " << hidden);
      expectNoNumberOfOne<float>(number, hidden);
      expectNoNumberOfOne<bf16>(number, hidden);
    }
}

} // namespace
