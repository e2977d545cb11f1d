//===- LineChartTest.cpp - curves as a picture ----------------------------===//

#include "passes/printing/LineChart.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir::fsdp;

namespace {

TEST(LineChartTest, TicksCoverTheValuesInRoundSteps) {
  EXPECT_EQ(findTicks(0, 100, false), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(findTicks(0, 21, false), (std::vector<double>{0, 5, 10, 15, 20, 25}));
  EXPECT_EQ(findTicks(0, 0, false), (std::vector<double>{0, 1}));
  EXPECT_EQ(findTicks(30, 4000, true), (std::vector<double>{10, 100, 1000, 10000}));
  EXPECT_EQ(findTicks(10, 10, true), (std::vector<double>{10, 100}));
  for (double most = 1e-7; most < 1e9; most *= 1.37) {
    const std::vector<double> ticks = findTicks(0, most, false);
    EXPECT_GE(ticks.back(), most * (1 - 1e-9));
    EXPECT_LT(ticks[ticks.size() - 2], most);
    EXPECT_GE(ticks.size(), 4u) << most;
    EXPECT_LE(ticks.size(), 12u) << most;
  }
}

std::string draw(llvm::ArrayRef<LineChart> charts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  drawSvg(charts, os);
  return text;
}

TEST(LineChartTest, PlacesPointsByLogarithmAndLeavesEmptyChartsOut) {
  const LineChart chart{
      "a < b", "devices", "tokens/s", true, {{"measured", {{1, 10}, {10, 1000}}}, {"none", {}}}};
  const std::string one = draw({chart});
  // The ends of a logarithmic axis of 10 to 1000 in a frame of 480 x 240 at (96, 40).
  EXPECT_NE(one.find("M96.0 280.0L576.0 40.0"), std::string::npos) << one;
  EXPECT_NE(one.find("a &lt; b"), std::string::npos);
  EXPECT_EQ(one.find("none<"), std::string::npos);
  EXPECT_EQ(one, draw({chart, {"empty", "x", "y", false, {{"none", {}}}}}));
}

} // namespace
