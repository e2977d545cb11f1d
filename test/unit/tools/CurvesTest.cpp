#include "tools/fsdpc-log/Curves.h"
#include "tools/fsdpc-log/Chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace fsdpc_log;

namespace {

TEST(CurvesTest, DownsamplingKeepsTheExtremesOfEachColumn) {
  std::vector<Point> points;
  for (int i = 0; i < 100000; ++i)
    points.push_back({double(i), std::sin(i * 0.37)});
  points[12345].y = 50; // a spike of one step
  points[54321].y = -50;
  points[70000].y = NAN;
  const Axis x{"step", false, 0, 100000};
  const std::vector<Point> few = downsample(points, x, 800);
  EXPECT_LE(few.size(), 4 * 801u + 1);
  const auto has = [&](double at, double y) {
    return std::any_of(few.begin(), few.end(),
                       [&](const Point &point) { return point.x == at && point.y == y; });
  };
  EXPECT_TRUE(has(12345, 50));
  EXPECT_TRUE(has(54321, -50));
  EXPECT_TRUE(has(0, points.front().y));
  EXPECT_TRUE(has(99999, points.back().y));
  EXPECT_EQ(std::count_if(few.begin(), few.end(), [](const Point &p) { return std::isnan(p.y); }),
            1);
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                             [](const Point &a, const Point &b) { return a.x < b.x; }));
  const std::vector<Point> all(points.begin(), points.begin() + 5);
  EXPECT_EQ(downsample(all, Axis{"step", false, 0, 5}, 800).size(), 5u);
}

TEST(CurvesTest, TicksAreRoundAndInside) {
  EXPECT_EQ(ticksOf({"", false, 0, 12}), (std::vector<double>{0, 2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(ticksOf({"", true, 0.9, 1100}), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(ticksOf({"", true, 0.9, 11}), (std::vector<double>{1, 2, 5, 10}));
  for (const Axis &axis : {Axis{"", false, -3e-9, 7e-9}, Axis{"", false, 1e12, 1.0001e12},
                           Axis{"", true, 1e-30, 1e30}, Axis{"", true, 2.1, 2.2}}) {
    const std::vector<double> ticks = ticksOf(axis);
    EXPECT_GE(ticks.size(), 2u) << axis.low;
    EXPECT_LE(ticks.size(), 21u) << axis.low;
    for (const double tick : ticks)
      EXPECT_TRUE(tick >= axis.low && tick <= axis.high) << tick;
  }
}

TEST(CurvesTest, AnAxisOfOneValueHasRoom) {
  for (const double value : {0.0, 3.0, -2e-8})
    for (const bool isLog : {false, true}) {
      if (isLog && value <= 0)
        continue;
      Axis axis{"", isLog};
      fitAxis(axis, value, value);
      EXPECT_LT(axis.low, axis.high);
      EXPECT_NEAR(axis.place(value), 0.5, 0.02);
    }
}

TEST(ChartTest, TextIsEscaped) {
  EXPECT_EQ(escapedXml("a<b>&\"\n"), "a&lt;b&gt;&amp;&quot;\\n");
  RunCurves run;
  run.name = "<script>";
  run.ofField = {{{1, 2}, {2, 3}}};
  run.marks = {{1.5, "cause & effect"}};
  const Chart chart({run}, {"loss"}, Axis{"step"}, /*isLogY=*/true);
  const std::string text = chart.svg(/*isFile=*/true);
  EXPECT_EQ(text.find("<script>"), text.npos);
  EXPECT_NE(text.find("&lt;script&gt; (1 restart or rollback)"), text.npos);
  EXPECT_NE(text.find("<title>cause &amp; effect</title>"), text.npos);
  EXPECT_NE(text.find("loss (logarithmic)"), text.npos);
}

} // namespace
