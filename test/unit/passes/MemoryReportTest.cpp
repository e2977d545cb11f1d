//===- MemoryReportTest.cpp - the numbers of a schedule -------------------===//

#include "passes/MemoryReport.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The three-unit chain of test/passes/schedule.mlir, scheduled.
class MemoryReportTest : public testing::Test {
protected:
  MemoryReport measure(int prefetch, bool plan = true) {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
    MLIRContext context(registry);
    std::string path = std::string(std::getenv("FSDP_SOURCE_DIR")) + "/test/passes/schedule.mlir";
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
    PassManager manager(&context);
    SchedulePassOptions options;
    options.prefetch = prefetch;
    manager.addPass(createSchedulePass(options));
    if (plan)
      manager.addPass(createPlanMemoryPass());
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return computeMemoryReport(*module);
  }
};

TEST_F(MemoryReportTest, SumsShards) {
  MemoryReport report = measure(1);
  EXPECT_EQ(report.mesh, "fsdp=2");
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.parameters, 3 * 64);
  EXPECT_EQ(report.gradients, 3 * 64);
  EXPECT_EQ(report.optimizer, 3 * 64);
  EXPECT_EQ(report.replicatedParameters, (20 + 20 + 4) * 4);
  EXPECT_EQ(report.replicatedGradients, (20 + 20 + 4) * 4);
  EXPECT_EQ(report.replicatedOptimizer, (20 + 20 + 4) * 4);
  EXPECT_EQ(report.persistent, 128 + 6 * 64);
  EXPECT_EQ(report.transient, report.arena - report.persistent);
  EXPECT_GE(report.arena, report.lowerBound);
  EXPECT_EQ(measure(1, /*plan=*/false).arena, report.arena);
}

TEST_F(MemoryReportTest, AtMostTwoUnitsAreWhole) {
  // 80 bytes of fc1 and fc2 take 128 each, the 16 of the head take 64.
  EXPECT_EQ(measure(1).gathered, 256);
}

TEST_F(MemoryReportTest, OneUnitIsWholeWithoutPrefetch) { EXPECT_EQ(measure(0).gathered, 128); }

TEST_F(MemoryReportTest, AllUnitsAreWholeWithMuchPrefetch) {
  EXPECT_EQ(measure(9).gathered, 3 * 128 + 64);
}

TEST_F(MemoryReportTest, CountsCollectives) {
  MemoryReport report = measure(1);
  std::string text;
  for (const CollectiveCount &call : report.collectives)
    text += std::to_string(call.count) + " " + call.kind + " " + call.axes[0] + " " +
            std::to_string(call.bytes) + "\n";
  EXPECT_EQ(text, "3 all_gather fsdp 80\n1 all_gather fsdp 16\n1 all_reduce fsdp 8\n"
                  "1 reduce_scatter fsdp 16\n2 reduce_scatter fsdp 80\n");
  EXPECT_TRUE(report.evaluateCollectives.empty());
}

TEST_F(MemoryReportTest, WritesJsonAndATable) {
  MemoryReport report = measure(1);
  llvm::json::Value value = report.toJSON();
  const llvm::json::Object &object = *value.getAsObject();
  for (const char *key : {"parameters", "gradients", "optimizer", "gathered", "activations",
                          "persistent", "transient", "arena", "lower_bound",
                          "replicated_parameters", "replicated_gradients", "replicated_optimizer"})
    EXPECT_TRUE(object.getInteger(key)) << key;
  EXPECT_EQ(object.getInteger("arena"), report.arena);
  const llvm::json::Object &call = *(*object.getArray("collectives"))[0].getAsObject();
  EXPECT_EQ(call.getString("kind"), "all_gather");
  EXPECT_EQ(call.getInteger("bytes"), 80);
  EXPECT_EQ(call.getInteger("count"), 3);
  EXPECT_EQ((*call.getArray("axes"))[0].getAsString(), "fsdp");

  report.arena = 1234567;
  std::string table;
  llvm::raw_string_ostream os(table);
  report.print(os);
  EXPECT_NE(table.find("bytes of each of 2 ranks (fsdp=2)\n"), std::string::npos);
  EXPECT_NE(table.find("  parameters                 176             192\n"), std::string::npos);
  EXPECT_NE(table.find("1,234,567"), std::string::npos);
  EXPECT_NE(table.find("     3 x all_gather     over fsdp, 80 bytes each\n"), std::string::npos);
}

} // namespace
