//===- RestartTest.cpp - restarted machines run as new ones do ------------===//
//
// Random models in each phase: a machine that has run steps, or whose run has failed with work in
// flight, and is restarted with another seed leaves the same bits behind as a new machine. So does
// one whose hosts issue a step before the last one has logged anything.
//
//===----------------------------------------------------------------------===//

#include "RandomModule.h"
#include "StepTrace.h"

#include "dialect/nn/NNDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/Pipelines.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

class RestartTest : public testing::Test {
protected:
  RestartTest() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
    nn::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  StepTrace traceNew(const RandomCase &random, uint64_t seed) {
    FailureOr<StepTrace> trace =
        traceSteps(*random.module, optionsOf(seed), random.data, isDeferred(random));
    EXPECT_TRUE(succeeded(trace));
    return succeeded(trace) ? *trace : StepTrace();
  }
  StepTrace traceRestarted(Machine &machine, const RandomCase &random, uint64_t seed,
                           bool isAhead = false) {
    EXPECT_TRUE(succeeded(machine.restart(seed)));
    FailureOr<StepTrace> trace =
        traceSteps(machine, *random.module, random.data, isDeferred(random), isAhead);
    EXPECT_TRUE(succeeded(trace));
    return succeeded(trace) ? *trace : StepTrace();
  }
  bool lower(RandomCase &random, void (*stage)(OpPassManager &, const PipelineOptions &)) {
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
    PassManager manager(&context);
    stage(manager, random.options);
    return succeeded(manager.run(*random.module));
  }
  void compare(const RandomCase &random) {
    auto machine = Machine::create(*random.module, optionsOf(1));
    ASSERT_TRUE(succeeded(machine));
    ASSERT_TRUE(succeeded(traceSteps(**machine, *random.module, random.data, isDeferred(random))));
    const StepTrace second = traceNew(random, 2), third = traceNew(random, 3);
    EXPECT_NE(findDifference(third, second), "") << "the seed changes nothing";
    EXPECT_EQ(findDifference(traceRestarted(**machine, random, 2), second), "");
    EXPECT_EQ(findDifference(traceRestarted(**machine, random, 2, /*isAhead=*/true), second), "")
        << "issued ahead";
    {
      ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
      EXPECT_TRUE(failed((*machine)->run("train", DataSet()))) << "it needs no data";
    }
    EXPECT_EQ(findDifference(traceRestarted(**machine, random, 3), third), "") << "failed before";
  }

  static bool isDeferred(const RandomCase &random) { return random.options.deferUpdates == "on"; }
  static MachineOptions optionsOf(uint64_t seed) {
    MachineOptions options;
    options.seed = seed;
    options.totalSteps = 4;
    return options;
  }

  MLIRContext context;
};

TEST_F(RestartTest, RunsAsANewMachine) {
  int64_t compared = 0, pipelines = 0;
  for (uint64_t seed = 1; compared < 3 || pipelines < 1; ++seed) {
    ASSERT_LE(seed, 100) << compared << " cases compared, " << pipelines << " in stages";
    SCOPED_TRACE("case " + std::to_string(seed));
    RandomCase random =
        makeRandomCase(context, seed, /*mostRanks=*/4, kEmittedWishes, seed % 2 ? 0 : 100);
    // Some models cannot be computed in microbatches, some positions not be split.
    if (!lower(random, buildGlobalPipeline))
      continue;
    compare(random);
    if (!lower(random, buildLocalPipeline))
      continue;
    compare(random);
    ASSERT_TRUE(lower(random, buildScheduledPipeline));
    compare(random);
    ++compared;
    pipelines += random.isPipeline;
  }
}

} // namespace
