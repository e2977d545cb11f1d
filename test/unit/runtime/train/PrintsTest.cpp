#include "runtime/train/Prints.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdp::rt;

namespace {

constexpr const char *outputs[] = {"loss",   "h.max",   "h.min",   "x.min", "h.nan",
                                   "h.mean", "b.check", "a.check", "y.min", "y.max"};
constexpr int checks[] = {7, 6};
constexpr ExecutionPlan plan{"train", {}, outputs, false, checks};

TEST(PrintsTest, OutputsInAnyOrderAreThoseOfTheirPrint) {
  const Prints prints(plan);
  EXPECT_FALSE(prints.empty());
  EXPECT_EQ(prints.describe({1, 4, -2, 7, 3, 0.5f, 0, 0, 7, 7}),
            "  h: min -2  max 4  mean 0.5  nan 3\n");
  EXPECT_EQ(prints.describe({1, -INFINITY, INFINITY, 7, 16777216, -NAN, 0, 0, 7, 7}),
            "  h: min inf  max -inf  mean nan  nan 16777216\n");
  std::string owned;
  for (std::size_t output = 0; output < std::size(outputs); ++output)
    owned += prints.owns(output) ? '1' : '0';
  EXPECT_EQ(owned, "0110111100") << "metrics that lack a number are no prints";
}

TEST(PrintsTest, TheFirstFailedCheckIsThatOfTheModelsOrder) {
  const Prints prints(plan);
  EXPECT_FALSE(prints.findFailed({NAN, 4, -2, 7, 3, 0.5f, 0, 0, 7, 7}));
  const auto both = prints.findFailed({1, 4, -2, 7, 3, 0.5f, 2, 1, 7, 7});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->name, "a");
  EXPECT_EQ(both->values, 1);
  const auto last = prints.findFailed({1, 4, -2, 7, 3, 0.5f, 2, 0, 7, 7});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->name, "b");
}

} // namespace
