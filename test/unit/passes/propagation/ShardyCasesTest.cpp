//===- ShardyCasesTest.cpp - the answers of Shardy's public cases ---------===//

#include "test/unit/passes/propagation/CaseFile.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir::fsdp::propagation;

/// At least 95 % of the tensors of all cases, and all but those that docs/sharding.md names.
TEST(ShardyCases, Agree) {
  const char *source = std::getenv("FSDP_SOURCE_DIR");
  std::string root = source ? source : ".";
  std::vector<Case> cases = readCases(root + "/test/unit/passes/propagation/shardy.cases");
  int agreed = 0, all = 0;
  std::vector<std::string> deviations;
  for (Case &item : cases) {
    if (item.strategy == "pipeline")
      applyConstraints(item.problem);
    ASSERT_EQ(check(item.problem), "") << item.name;
    Solution solution = propagate(item.problem, item.options());
    EXPECT_EQ(check(item.problem, &solution), "") << item.name;
    for (const auto &[name, expected] : item.expected) {
      std::string got = axesOf(item.problem.mesh, solution.shardings[item.values[name]]);
      ++all;
      agreed += got == expected;
      if (got != expected)
        deviations.push_back(item.name + " " + name + ": got " + got + ", expected " + expected);
    }
  }
  std::cout << agreed << " of " << all << " tensors in " << cases.size()
            << " cases agree with Shardy\n";
  for (const std::string &deviation : deviations)
    std::cout << deviation << '\n';
  EXPECT_GE(all, 375);
  EXPECT_GE(agreed * 100, all * 95);
  for (const std::string &deviation : deviations)
    EXPECT_EQ(deviation.substr(0, 9), "basic-cut") << deviation;
}

TEST(CaseFile, RefusesUnknownEntries) {
  std::string path = testing::TempDir() + "propagation.cases";
  auto messageOf = [&](const std::string &text) -> std::string {
    FILE *file = std::fopen(path.c_str(), "w");
    std::fputs(("case c basic\nmesh a=2\nvalue x 8 a\n" + text).c_str(), file);
    std::fclose(file);
    try {
      readCases(path);
    } catch (const std::exception &error) {
      return std::string(error.what()).substr(path.size());
    }
    return "";
  };
  EXPECT_EQ(messageOf(""), "");
  EXPECT_EQ(messageOf("valeu y 8"), ":4: no line begins with 'valeu'");
  EXPECT_EQ(messageOf("value y 8 b"), ":4: no axis 'b'");
  EXPECT_EQ(messageOf("expect y a"), ":4: no value 'y'");
  EXPECT_EQ(messageOf("op sum a->a a=8 : x -> x"), ":4: no kind 'sum'");
}
