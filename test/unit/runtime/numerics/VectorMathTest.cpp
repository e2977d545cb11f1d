#include "runtime/numerics/VectorMath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

using namespace fsdp::rt;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The largest error over [low, high], in units in the last place of the exact value.
template <typename Function, typename Exact>
double worst(Function function, Exact exact, double low, double high) {
  double error = 0;
  for (int i = 0; i <= 200000; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / 200000);
    const double value = exact(double(x));
    const auto rounded = std::max(std::fabs(static_cast<float>(value)), 1.17549435e-38f);
    const double unit = double(std::nextafter(rounded, kInfinity)) - double(rounded);
    error = std::max(error, std::fabs(double(function(x)) - value) / unit);
  }
  return error;
}

#define FLOAT(name) [](float x) { return name(x); }
#define DOUBLE(name) [](double x) { return std::name(x); }

TEST(VectorMathTest, ExponentialIsAccurate) {
  EXPECT_LT(worst(FLOAT(vectorExp), DOUBLE(exp), -87.3, 88.7), 1.5);
  EXPECT_LT(worst(FLOAT(vectorExp), DOUBLE(exp), -1, 1), 1.5);
  EXPECT_EQ(vectorExp(0.0f), 1.0f);
  EXPECT_EQ(vectorExp(-1000.0f), 0.0f);
  EXPECT_EQ(vectorExp(-kInfinity), 0.0f);
  EXPECT_EQ(vectorExp(89.0f), kInfinity);
  EXPECT_TRUE(std::isnan(vectorExp(kNaN)));
}

TEST(VectorMathTest, LogarithmIsAccurate) {
  EXPECT_LT(worst(FLOAT(vectorLog), DOUBLE(log), 1e-6, 4), 1.5);
  EXPECT_LT(worst(FLOAT(vectorLog), DOUBLE(log), 1, 1e30), 1.5);
  EXPECT_LT(worst(FLOAT(vectorLog), DOUBLE(log), 1e-44, 2e-38), 1.5);
  EXPECT_EQ(vectorLog(1.0f), 0.0f);
  EXPECT_EQ(vectorLog(0.0f), -kInfinity);
  EXPECT_EQ(vectorLog(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(vectorLog(-1.0f)));
  EXPECT_TRUE(std::isnan(vectorLog(-kInfinity)));
  EXPECT_TRUE(std::isnan(vectorLog(kNaN)));
}

TEST(VectorMathTest, LogarithmNearOneIsAccurate) {
  EXPECT_LT(worst(FLOAT(vectorLog1p), DOUBLE(log1p), -0.999, 10), 3);
  EXPECT_LT(worst(FLOAT(vectorLog1p), DOUBLE(log1p), -1e-3, 1e-3), 3);
  EXPECT_EQ(vectorLog1p(1e-20f), 1e-20f);
  EXPECT_EQ(vectorLog1p(-1.0f), -kInfinity);
  EXPECT_EQ(vectorLog1p(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(vectorLog1p(-2.0f)));
  EXPECT_TRUE(std::isnan(vectorLog1p(kNaN)));
}

TEST(VectorMathTest, HyperbolicTangentIsAccurate) {
  EXPECT_LT(worst(FLOAT(vectorTanh), DOUBLE(tanh), -10, 10), 2.5);
  EXPECT_LT(worst(FLOAT(vectorTanh), DOUBLE(tanh), -0.5, 0.5), 2.5);
  EXPECT_LT(worst(FLOAT(vectorTanh), DOUBLE(tanh), -1e-3, 1e-3), 2.5);
  EXPECT_EQ(vectorTanh(1e-40f), std::tanh(1e-40f));
  EXPECT_TRUE(std::signbit(vectorTanh(-0.0f)));
  EXPECT_EQ(vectorTanh(100.0f), 1.0f);
  EXPECT_EQ(vectorTanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::isnan(vectorTanh(kNaN)));
}

TEST(VectorMathTest, ErrorFunctionIsAccurate) {
  EXPECT_LT(worst(FLOAT(vectorErf), DOUBLE(erf), -6, 6), 2.5);
  EXPECT_LT(worst(FLOAT(vectorErf), DOUBLE(erf), -1e-3, 1e-3), 2.5);
  EXPECT_EQ(vectorErf(100.0f), 1.0f);
  EXPECT_EQ(vectorErf(-kInfinity), -1.0f);
  EXPECT_TRUE(std::isnan(vectorErf(kNaN)));
}

TEST(VectorMathTest, DoublesAreTheLibrarys) {
  EXPECT_EQ(vectorExp(0.3), std::exp(0.3));
  EXPECT_EQ(vectorLog(0.3), std::log(0.3));
  EXPECT_EQ(vectorLog1p(0.3), std::log1p(0.3));
  EXPECT_EQ(vectorTanh(0.3), std::tanh(0.3));
  EXPECT_EQ(vectorErf(0.3), std::erf(0.3));
}

TEST(VectorMathTest, ExtremesPropagateNans) {
  EXPECT_EQ(maximum(1.0f, 2.0f), 2.0f);
  EXPECT_EQ(minimum(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(maximum(-kInfinity, -1.0f), -1.0f);
  for (const float other : {1.0f, kInfinity, -kInfinity}) {
    EXPECT_TRUE(std::isnan(maximum(kNaN, other)));
    EXPECT_TRUE(std::isnan(maximum(other, kNaN)));
    EXPECT_TRUE(std::isnan(minimum(kNaN, other)));
    EXPECT_TRUE(std::isnan(minimum(other, kNaN)));
  }
}

} // namespace
