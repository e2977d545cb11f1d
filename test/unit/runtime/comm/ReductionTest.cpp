#include "runtime/comm/Reduction.h"
#include "base/Error.h"
#include "runtime/device/StreamingStores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

// Values for which another order of summation gives other bits.
float rough(int source, std::size_t i) {
  return std::ldexp(1.0f / 3 + float((i * 31 + source * 17) % 64) - 32, int((i + source * 5) % 20));
}

TEST(Reduction, SumsInRankOrderToTheBit) {
  for (int sources : {1, 2, 3, 4, 5, 7, 8, 16})
    for (std::size_t count : {0, 1, 15, 2048, 2049, 5000})
      for (int target : {-1, 0, sources - 1}) { // elsewhere, or one of the sources
        std::vector<std::vector<float>> data(sources, std::vector<float>(count));
        std::vector<float> expected(count), elsewhere(count);
        std::vector<const void *> pointers;
        for (int s = 0; s < sources; ++s) {
          for (std::size_t i = 0; i < count; ++i) {
            data[s][i] = rough(s, i);
            expected[i] = s == 0 ? data[s][i] : expected[i] + data[s][i];
          }
          pointers.push_back(data[s].data());
        }
        float *to = target < 0 ? elsewhere.data() : data[target].data();
        reduceInRankOrder(to, pointers.data(), sources, count, DType::F32, ReduceOp::Sum);
        ASSERT_EQ(count ? std::memcmp(to, expected.data(), count * sizeof(float)) : 0, 0)
            << sources << " sources, " << count << " elements, target " << target;
      }
}

TEST(Reduction, LargeSumsAreTheSameBits) { // they are written another way
  const std::size_t count = kStreamingBytes / sizeof(float) + 77;
  for (int sources : {1, 2, 5}) {
    std::vector<std::vector<float>> data(sources, std::vector<float>(count));
    std::vector<const void *> pointers;
    for (int s = 0; s < sources; ++s) {
      for (std::size_t i = 0; i < count; ++i)
        data[s][i] = rough(s, i);
      pointers.push_back(data[s].data());
    }
    std::vector<float> elsewhere(count + 2, -1);
    reduceInRankOrder(elsewhere.data() + 1, pointers.data(), sources, count, DType::F32,
                      ReduceOp::Sum);
    reduceInRankOrder(data[0].data(), pointers.data(), sources, count, DType::F32, ReduceOp::Sum);
    EXPECT_EQ(std::memcmp(elsewhere.data() + 1, data[0].data(), count * sizeof(float)), 0);
    EXPECT_EQ(data[0][12345], [&] {
      float sum = rough(0, 12345);
      for (int s = 1; s < sources; ++s)
        sum += rough(s, 12345);
      return sum;
    }());
    EXPECT_EQ(elsewhere.front(), -1);
    EXPECT_EQ(elsewhere.back(), -1);
  }
}

TEST(StreamingStores, CopyAndClearExactlyTheirRange) {
  for (std::size_t shift : {0, 1, 31, 63})
    for (std::size_t bytes : {0, 1, 63, 64, 65, 1000, 4096}) {
      std::vector<char> from(bytes + 64), to(bytes + 256, 'x'), expected = to;
      for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<char>(i * 7);
      std::memcpy(expected.data() + shift, from.data() + 3, bytes);
      streamCopy(to.data() + shift, from.data() + 3, bytes);
      ASSERT_EQ(to, expected) << shift << ' ' << bytes;
      std::memset(expected.data() + shift, 0, bytes);
      streamZeros(to.data() + shift, bytes);
      ASSERT_EQ(to, expected) << shift << ' ' << bytes;
    }
  std::vector<char> from(kStreamingBytes + 5, 'a'), to(kStreamingBytes + 6, 'x');
  copyBytes(to.data(), from.data(), from.size());
  EXPECT_EQ(std::count(to.begin(), to.end(), 'a'), std::ptrdiff_t(from.size()));
  EXPECT_EQ(to.back(), 'x');
}

TEST(Reduction, TheOrderMatters) { // or the test above shows nothing
  bool differs = false;
  for (std::size_t i = 0; i < 100; ++i)
    differs |=
        (rough(0, i) + rough(1, i)) + rough(2, i) != rough(0, i) + (rough(1, i) + rough(2, i));
  EXPECT_TRUE(differs);
}

TEST(Reduction, SumsOfBf16AreRoundedOnce) {
  for (int sources : {1, 2, 3, 8})
    for (std::size_t count : {0, 1, 15, 2049, 5000})
      for (int target : {-1, 0, sources - 1}) {
        std::vector<std::vector<bf16>> data(sources, std::vector<bf16>(count));
        std::vector<bf16> expected(count), elsewhere(count);
        std::vector<const void *> pointers;
        for (int s = 0; s < sources; ++s) {
          for (std::size_t i = 0; i < count; ++i)
            data[s][i] = rough(s, i);
          pointers.push_back(data[s].data());
        }
        for (std::size_t i = 0; i < count; ++i) {
          float sum = data[0][i];
          for (int s = 1; s < sources; ++s)
            sum += data[s][i];
          expected[i] = sum;
        }
        bf16 *to = target < 0 ? elsewhere.data() : data[target].data();
        reduceInRankOrder(to, pointers.data(), sources, count, DType::BF16, ReduceOp::Sum);
        ASSERT_EQ(count ? std::memcmp(to, expected.data(), count * sizeof(bf16)) : 0, 0)
            << sources << " sources, " << count << " elements, target " << target;
      }
}

TEST(Reduction, SumsOfBf16AreNotRoundedInBetween) { // 1 + 2^-8 is no bf16, 1 + 2^-7 is
  const bf16 a[] = {bf16(1.0f)}, b[] = {bf16(0x1p-8f)};
  const void *sources[] = {a, b, b};
  bf16 result[1];
  reduceInRankOrder(result, sources, 3, 1, DType::BF16, ReduceOp::Sum);
  EXPECT_EQ(result[0], 1 + 0x1p-7f);
}

TEST(Reduction, AMaximumOfBf16WithANanIsNan) {
  const bf16 a[] = {bf16(1.0f), bf16(NAN), bf16(-3.0f)}, b[] = {bf16(NAN), bf16(2.0f), bf16(-2.0f)};
  const void *sources[] = {a, b};
  bf16 result[3];
  reduceInRankOrder(result, sources, 2, 3, DType::BF16, ReduceOp::Max);
  EXPECT_TRUE(std::isnan(float(result[0])));
  EXPECT_TRUE(std::isnan(float(result[1])));
  EXPECT_EQ(result[2], -2.0f);
}

TEST(Reduction, AMaximumWithANanIsNan) {
  const float a[] = {1, NAN, -3, -0.5f}, b[] = {NAN, 2, -2, -1};
  const void *sources[] = {a, b};
  float result[4];
  reduceInRankOrder(result, sources, 2, 4, DType::F32, ReduceOp::Max);
  EXPECT_TRUE(std::isnan(result[0]));
  EXPECT_TRUE(std::isnan(result[1]));
  EXPECT_EQ(result[2], -2);
  EXPECT_EQ(result[3], -0.5f);
}

TEST(Reduction, IntegersWrapAround) {
  const std::int32_t a[] = {INT32_MAX}, b[] = {1};
  const void *sources[] = {a, b};
  std::int32_t result[1];
  reduceInRankOrder(result, sources, 2, 1, DType::I32, ReduceOp::Sum);
  EXPECT_EQ(result[0], INT32_MIN);
}

TEST(Reduction, RefusesTypesItCannotAdd) {
  const void *sources[] = {nullptr};
  try {
    reduceInRankOrder(nullptr, sources, 1, 0, DType::Bool, ReduceOp::Sum);
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "reduction got elements of type bool, expected f32, f64, bf16, i32 or i64");
  }
}

} // namespace
