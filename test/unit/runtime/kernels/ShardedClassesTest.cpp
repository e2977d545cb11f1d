//===- ShardedClassesTest.cpp - kernels on a part of the classes or rows --===//
//
// What the ranks compute of their parts, put together as fsdp-partition does, is what one rank
// computes of the whole.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"
#include "runtime/program/ShardLayout.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

using Floats = std::vector<float>;

template <class T>
std::vector<T> normal(std::size_t count, std::mt19937 &random, float mean, float deviation) {
  std::normal_distribution<float> distribution(mean, deviation);
  std::vector<T> values(count);
  for (T &value : values)
    value = T(distribution(random));
  return values;
}

/// Columns of rank `rank`, with `padding` behind the last one.
template <class T>
std::vector<T> partOf(const std::vector<T> &whole, std::size_t rows, ShardLayout tile,
                      std::size_t rank, T padding) {
  std::vector<T> part(rows * tile.local, padding);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(whole.begin() + std::ptrdiff_t(r * tile.total + rank * tile.local), tile.held(rank),
                part.begin() + std::ptrdiff_t(r * tile.local));
  return part;
}

template <class T> class ShardedClasses : public ::testing::Test {};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(ShardedClasses, Elements);

// Sizes that do not divide, among them one that leaves the last rank of four without a class.
TYPED_TEST(ShardedClasses, CrossEntropyOfPartsIsThatOfTheWhole) {
  using T = TypeParam;
  std::mt19937 random(7);
  for (const std::size_t classes : {1, 5, 8, 257, 1000})
    for (const std::size_t ranks : {1, 2, 4}) {
      SCOPED_TRACE(::testing::Message() << classes << " classes over " << ranks);
      const std::size_t rows = 6, part = (classes + ranks - 1) / ranks;
      const ShardLayout tile{1, part, 1, classes};
      const std::vector<T> logits = normal<T>(rows * classes, random, -3, 5);
      std::vector<std::int32_t> labels;
      for (std::size_t r = 0; r < rows; ++r)
        labels.push_back(std::int32_t(random() % classes));
      const Floats upstream = normal<float>(rows, random, 0, 1);
      Floats losses(rows), logSumExp(rows);
      std::vector<T> gradients(rows * classes);
      kernels::crossEntropy({rows, classes}, logits.data(), labels.data(), losses.data(),
                            logSumExp.data());
      kernels::crossEntropyGrad({rows, classes}, logits.data(), labels.data(), logSumExp.data(),
                                upstream.data(), gradients.data());

      // Padding is infinite: it would show in a maximum, a sum or a gradient.
      const T padding(std::numeric_limits<float>::infinity());
      std::vector<std::vector<std::int32_t>> own(ranks, labels);
      std::vector<Floats> tops(ranks, Floats(rows)), sums = tops, picked = tops;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        kernels::shardIndices({rows, std::int64_t(classes), std::int64_t(part), std::int64_t(rank)},
                              labels.data(), own[rank].data());
        const std::vector<T> mine = partOf(logits, rows, tile, rank, padding);
        const auto held = static_cast<std::int64_t>(tile.held(rank));
        kernels::partialCrossEntropy({rows, part}, mine.data(), own[rank].data(), &held,
                                     tops[rank].data(), sums[rank].data(), picked[rank].data());
      }
      for (std::size_t r = 0; r < rows; ++r) {
        float top = tops[0][r], label = 0;
        double sum = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank)
          top = std::max(top, tops[rank][r]);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          sum += double(sums[rank][r]) * std::exp(double(tops[rank][r]) - top);
          label += picked[rank][r];
        }
        EXPECT_NEAR(std::log(sum) + top, logSumExp[r], 2e-6 * (1 + std::abs(logSumExp[r])));
        EXPECT_NEAR(std::log(sum) + top - label, losses[r], 2e-6 * (1 + std::abs(logSumExp[r])));
      }
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::vector<T> mine = partOf(logits, rows, tile, rank, padding), got(rows * part);
        const auto held = static_cast<std::int64_t>(tile.held(rank));
        kernels::partialCrossEntropyGrad({rows, part}, mine.data(), own[rank].data(),
                                         logSumExp.data(), upstream.data(), &held, got.data());
        EXPECT_TRUE(got == partOf(gradients, rows, tile, rank, T(0.0f)))
            << "the same bits, zeros in the padding";
        kernels::partialCrossEntropyGrad({rows, part}, mine.data(), own[rank].data(),
                                         logSumExp.data(), upstream.data(), &held, mine.data());
        EXPECT_TRUE(mine == got) << "in place";
      }
    }
}

TYPED_TEST(ShardedClasses, EmbeddingOfPartsIsThatOfTheWhole) {
  using T = TypeParam;
  std::mt19937 random(8);
  for (const std::size_t width : {1, 64}) {
    const std::size_t vocabulary = 7, count = 40, ranks = 3, part = 3;
    const std::vector<T> table = normal<T>(vocabulary * width, random, 0, 1),
                         dOut = normal<T>(count * width, random, 0, 1);
    std::vector<std::int64_t> ids(count), own(count);
    for (std::int64_t &id : ids)
      id = std::int64_t(random() % vocabulary);
    std::vector<T> out(count * width), sum(count * width, T(0.0f)), mine(count * width);
    Floats dTable(vocabulary * width), dPart(part * width);
    kernels::embedding({count, vocabulary, width}, table.data(), ids.data(), out.data());
    kernels::embeddingGrad({count, vocabulary, width}, ids.data(), dOut.data(), dTable.data());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      kernels::shardIndices({count, vocabulary, part, std::int64_t(rank)}, ids.data(), own.data());
      std::vector<T> rows(part * width, T(std::numeric_limits<float>::quiet_NaN()));
      const std::size_t begin = rank * part * width,
                        size = std::min(part, vocabulary - rank * part) * width;
      std::copy_n(table.begin() + std::ptrdiff_t(begin), size, rows.begin());
      const EmbeddingShape shape{count, part, width, /*partial=*/true};
      kernels::embedding(shape, rows.data(), own.data(), mine.data());
      for (std::size_t i = 0; i < mine.size(); ++i)
        sum[i] = T(float(sum[i]) + float(mine[i]));
      kernels::embeddingGrad(shape, own.data(), dOut.data(), dPart.data());
      for (std::size_t i = 0; i < dPart.size(); ++i)
        EXPECT_EQ(dPart[i], i < size ? dTable[begin + i] : 0);
    }
    EXPECT_TRUE(sum == out);
  }
}

TEST(ShardedClassesTest, InvalidIndicesAreNamed) {
  const std::int32_t ids[] = {0, 7}, negative[] = {-1};
  std::int32_t own[2];
  EXPECT_EQ(messageOf([&] { kernels::shardIndices({2, 7, 4, 0}, ids, own); }),
            "id or label 1 is 7, expected 0 to 6; correct the data or the model's vocabulary or "
            "number of classes");
  EXPECT_NE(messageOf([&] {
              kernels::shardIndices({1, 7, 4, 0}, negative, own);
            }).find("id or label 0 is -1"),
            std::string::npos);
}

TEST(ShardedClassesTest, OnlyMinusOneIsAClassElsewhere) {
  const Floats logits(8);
  const std::int32_t labels[] = {-1, 3};
  float top[2], sum[2], picked[2];
  const std::int64_t classes = 3; // the fourth column is padding
  EXPECT_EQ(
      messageOf([&] {
        kernels::partialCrossEntropy({2, 4}, logits.data(), labels, &classes, top, sum, picked);
      }),
      "label of row 1 is 3, expected 0 to 2; correct the data or the model's number of classes");
  const std::int32_t ids[] = {-2};
  Floats out(2);
  EXPECT_NE(messageOf([&] {
              kernels::embedding({1, 4, 2, true}, logits.data(), ids, out.data());
            }).find("id 0 of an embedding is -2"),
            std::string::npos);
}

} // namespace
