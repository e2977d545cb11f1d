//===- NumbersTest.cpp - texts that are numbers, and texts that are not ---===//

#include "base/Numbers.h"

#include <gtest/gtest.h>

using namespace base;

namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

/// The error in `text`, or the number.
std::string integer(const std::string &text, IntegerRange<std::int64_t> range = {}) {
  std::int64_t value = 0;
  const std::string wrong = parseInteger(text, range, value);
  return wrong.empty() ? std::to_string(value) : wrong;
}

bool takes(const std::string &text, NumberRange range, double expected) {
  double value = -1;
  return parseNumber(text, range, value).empty() && value == expected;
}

std::string number(const std::string &text, NumberRange range) {
  double value = -1;
  const std::string wrong = parseNumber(text, range, value);
  EXPECT_TRUE(wrong.empty() || value == -1) << "a refused text changed the value";
  return wrong;
}

TEST(NumbersTest, IntegersAreDecimal) {
  EXPECT_EQ(integer("0"), "0");
  EXPECT_EQ(integer("10"), "10");
  EXPECT_EQ(integer("-7"), "-7");
  EXPECT_EQ(integer("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(integer("-9223372036854775808"), "-9223372036854775808");
  for (const char *text : {"",
                           "-",
                           "-0",
                           "00",
                           "010",
                           "-010",
                           "0x10",
                           "0b1",
                           "+1",
                           ".5",
                           " 1",
                           "1 ",
                           "1\n",
                           "1.0",
                           "1e3",
                           "1'000",
                           "1_000",
                           "ten",
                           "nan",
                           "inf",
                           "9223372036854775808",
                           "100000000000000000000"})
    EXPECT_EQ(integer(text), "got " + inQuotes(text) +
                                 ", expected an integer from -9223372036854775808 to "
                                 "9223372036854775807");
  EXPECT_EQ(integer(std::string("1\0", 2)).substr(0, 5), "got '") << "all of the text";
}

TEST(NumbersTest, IntegersLieInTheirRange) {
  EXPECT_EQ(integer("1", {1, 9}), "1");
  EXPECT_EQ(integer("9", {1, 9}), "9");
  EXPECT_EQ(integer("0", {1, 9}), "got '0', expected an integer from 1 to 9");
  EXPECT_EQ(integer("10", {1, 9}), "got '10', expected an integer from 1 to 9");
  std::uint64_t seed = 0;
  EXPECT_EQ(parseInteger("18446744073709551615", IntegerRange<std::uint64_t>(), seed), "");
  EXPECT_EQ(seed, UINT64_MAX);
  EXPECT_EQ(parseInteger("-1", IntegerRange<std::uint64_t>(), seed),
            "got '-1', expected an integer from 0 to 18446744073709551615");
}

TEST(NumbersTest, NumbersAreFiniteDecimalsOfTheirRange) {
  const NumberRange amount, share = {0, false, 1}, positive = {0, true, kInfinity, false};
  EXPECT_TRUE(takes("0", amount, 0));
  EXPECT_TRUE(takes("3e-4", amount, 3e-4));
  EXPECT_TRUE(takes("1.5", amount, 1.5));
  EXPECT_TRUE(takes("10", amount, 10));
  EXPECT_TRUE(takes(".5", share, 0.5));
  EXPECT_TRUE(takes(".001", amount, 0.001));
  EXPECT_TRUE(takes("+1e-3", amount, 1e-3));
  EXPECT_TRUE(takes("+.25", amount, 0.25));
  EXPECT_TRUE(takes("5.", amount, 5));
  EXPECT_TRUE(takes("0.5", share, 0.5));
  EXPECT_TRUE(takes("1e300", positive, 1e300));
  for (const char *text :
       {"",     "-",        "-0",    "-1",     "+",    "++1",  "+-1",  "-+1",  "+-0",
        ".",    "+.",       "..5",   ".e5",    "-.5",  " 1",   "1 ",   "01",   "+01",
        "00.5", "0x1p3",    "+0x1",  "1e",     "1,5",  "nan",  "+nan", "-nan", "inf",
        "+inf", "infinity", "1e400", "1e-400", "1e39", "1e-50"})
    EXPECT_EQ(number(text, amount),
              "got '" + std::string(text) + "', expected a finite f32 number >= 0");
  for (const char *text : {"1", "0.999999999999", "-0.1", "nan"})
    EXPECT_EQ(number(text, share),
              "got '" + std::string(text) + "', expected an f32 number >= 0 and < 1");
  for (const char *text : {"0", "inf", "-1"})
    EXPECT_EQ(number(text, positive),
              "got '" + std::string(text) + "', expected a finite number > 0");
}

} // namespace
