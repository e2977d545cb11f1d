//===- PlanTableTest.cpp - what `plan` says of plans ----------------------===//

#include "tools/fsdpc/PlanTable.h"

#include "gtest/gtest.h"

using namespace fsdpc;

namespace {

/// The table of plans on `devices` of which the first takes 10 ms, and one that lost `step`
/// seconds.
std::string tableOf(double step, bool exact = true, int64_t devices = 1) {
  RankedPlan best;
  best.spec.mesh = {{"fsdp", devices}};
  best.spec.strategy = "fsdp";
  best.step = 0.01;
  best.exact = true;
  RankedPlan other = best;
  other.step = step;
  other.exposed = step - best.step;
  other.exact = exact;
  PlanSearchResult result;
  result.best = {best};
  result.losing = {other};
  result.machine = "m";
  PlanRequest request;
  request.devices = devices;
  std::string text;
  llvm::raw_string_ostream os(text);
  print(result, request, "gpt2", "", os);
  return text;
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(PlanTable, SaysHowMuchSlowerOthersAre) {
  EXPECT_TRUE(has(tableOf(0.011), ": 10 % slower: 1 ms more exposed\n")) << tableOf(0.011);
  EXPECT_TRUE(has(tableOf(0.01001), ": 0.1 % slower\n")) << tableOf(0.01001);
  EXPECT_TRUE(has(tableOf(0.008, /*exact=*/false), ": 25 % faster by its estimate\n"));
  // Sums of the same times in another order differ in their last digits.
  for (double step : {0.01, 0.01 * (1 + 1e-13), 0.01 * (1 - 1e-13)})
    EXPECT_TRUE(has(tableOf(step, step >= 0.01), ": as fast\n")) << tableOf(step);
}

TEST(PlanTable, CountsDevices) {
  EXPECT_EQ(tableOf(0.011).substr(0, 30), "plans for 1 device of machine ");
  EXPECT_EQ(tableOf(0.011, true, 2).substr(0, 31), "plans for 2 devices of machine ");
}

} // namespace
