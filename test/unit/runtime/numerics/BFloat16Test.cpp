#include "runtime/numerics/BFloat16.h"
#include "runtime/program/ArenaSpan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace fsdp::rt;

namespace {

float fromBits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(BFloat16, IsTwoBytesThatCopyAsBytes) {
  static_assert(sizeof(bf16) == 2 && alignof(bf16) == 2);
  static_assert(std::is_trivially_copyable_v<bf16> &&
                std::is_trivially_default_constructible_v<bf16>);
  static_assert(!std::is_convertible_v<float, bf16>, "rounding is never silent");
  static_assert(dtypeOf<bf16> == DType::BF16 && sizeInBytes(DType::BF16) == 2);
  EXPECT_EQ(bf16().bits, 0);
}

TEST(BFloat16, EveryValueSurvivesWideningAndRounding) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 value = bf16::fromBits(static_cast<std::uint16_t>(bits));
    if (std::isnan(float(value)))
      EXPECT_TRUE(std::isnan(float(bf16(float(value))))) << bits;
    else
      ASSERT_EQ(bf16(float(value)).bits, bits);
  }
}

/// The nearest of the two neighbours, ties to the even one, found by comparing distances.
std::uint16_t nearest(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t below = bits & 0xffff0000u;
  // The value after the largest counts as if the exponent went on: what is nearer to it is
  // infinite.
  const double low = fromBits(below);
  const double step = std::ldexp(1.0, std::max(int(bits >> 23 & 0xff), 1) - 127 - 7);
  const double up = std::abs(low) + step - std::abs(double(value));
  const double down = std::abs(double(value)) - std::abs(low);
  const bool raise = up < down || (up == down && (below >> 16 & 1));
  return static_cast<std::uint16_t>((below >> 16) + (raise ? 1 : 0));
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(float(bf16(1 + 0x1p-8f)), 1.0f);
  EXPECT_EQ(float(bf16(1 + 3 * 0x1p-8f)), 1 + 0x1p-6f);
  EXPECT_EQ(float(bf16(-(1 + 0x1.8p-8f))), -(1 + 0x1p-7f));
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    std::uint32_t bits = random();
    if (i % 4 == 0)
      bits = (bits & 0xffff0000u) | 0x8000u; // a tie
    const float value = fromBits(bits);
    if (std::isfinite(value))
      ASSERT_EQ(bf16(value).bits, nearest(value)) << value;
  }
}

TEST(BFloat16, KeepsWhatIsNotFiniteAndWhatIsSubnormal) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(bf16(infinity)), infinity);
  EXPECT_EQ(float(bf16(-infinity)), -infinity);
  EXPECT_EQ(float(bf16(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(float(bf16(0x1p-130f)), 0x1p-130f);
  EXPECT_TRUE(std::signbit(float(bf16(-0.0f))));
  // A NaN whose upper half would read as infinity, one whose rounding would carry out of it.
  for (std::uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    const bf16 rounded(fromBits(bits));
    EXPECT_TRUE(std::isnan(float(rounded))) << bits;
    EXPECT_EQ(rounded.bits >> 15, bits >> 31) << bits;
  }
}

TEST(BFloat16, ConvertsLikeOneByOne) {
  std::mt19937 random(2);
  for (std::size_t count : {0, 1, 15, 16, 31, 1000}) {
    std::vector<float> values(count), wide(count + 1, -1);
    for (float &value : values)
      value = fromBits(random());
    std::vector<bf16> narrow(count + 1, bf16::fromBits(0x1234));
    convert(values.data(), count, narrow.data());
    convert(narrow.data(), count, wide.data());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(narrow[i].bits, bf16(values[i]).bits) << i;
      const float expected = narrow[i];
      ASSERT_EQ(std::memcmp(&wide[i], &expected, sizeof(float)), 0) << i;
    }
    EXPECT_EQ(narrow[count].bits, 0x1234); // nothing past the end
    EXPECT_EQ(wide[count], -1);
  }
}

} // namespace
