//===- RecordTest.cpp - the expected record lists a launch's own operands -===//
//
// Programs are emitted from calls (codegen/Calls.h). If a call lacks an operand of its launch, the
// program's record lacks it, and the expected one must not.
//
//===----------------------------------------------------------------------===//

#include "codegen/EmitRecord.h"

#include "codegen/Calls.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A step with collectives, fused kernels, an update and the advance; and one of two segments.
constexpr const char *kModules[] = {"train-step.mlir", "cyclic.mlir"};

class RecordTest : public testing::TestWithParam<const char *> {
protected:
  RecordTest() {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
    nn::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceFile<ModuleOp>(
        std::string(std::getenv("FSDP_SOURCE_DIR")) + "/test/codegen/" + GetParam(), &context);
  }

  /// Calls `visit(program, launch, call)` for each launch.
  template <typename Visit> void forEachLaunch(Visit visit) {
    FailureOr<ScheduledProgram> program = ScheduledProgram::create(*module);
    ASSERT_TRUE(succeeded(program));
    for (const Timeline &timeline : program->timelines)
      for (const Action &action : timeline.actions) {
        FailureOr<Call> call = callFor(*program, action.launch);
        ASSERT_TRUE(succeeded(call));
        visit(*program, action.launch, *call);
      }
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

std::string lineOf(const ScheduledProgram &program, LaunchOp launch, const Call &call) {
  std::string text;
  llvm::raw_string_ostream out(text);
  printLaunch(program, launch, call, out);
  return text;
}

/// The ranges that a line lists, reads and writes apart, in any order.
std::vector<std::multiset<std::string>> rangesIn(StringRef line) {
  std::vector<std::multiset<std::string>> lists;
  for (StringRef label : {" reads=[", " writes=["}) {
    SmallVector<StringRef> ranges;
    line.split(label).second.split(']').first.split(ranges, ',', -1, /*KeepEmpty=*/false);
    std::multiset<std::string> &list = lists.emplace_back();
    for (StringRef range : ranges)
      list.insert(range.str());
  }
  return lists;
}

TEST_P(RecordTest, AnOperandThatACallDropsStaysInTheRecord) {
  int dropped = 0;
  forEachLaunch([&](const ScheduledProgram &program, LaunchOp launch, const Call &call) {
    const auto whole = rangesIn(lineOf(program, launch, call));
    for (SmallVector<Value> Call::*list : {&Call::reads, &Call::writes})
      for (size_t i = 0; i < (call.*list).size(); ++i) {
        Call less = call;
        (less.*list).erase((less.*list).begin() + i);
        EXPECT_EQ(rangesIn(lineOf(program, launch, less)), whole) << launch.getName().str();
        ++dropped;
      }
  });
  EXPECT_GT(dropped, 30);
}

TEST_P(RecordTest, AdditionsOfACallAreNotOperands) {
  forEachLaunch([&](const ScheduledProgram &program, LaunchOp launch, const Call &call) {
    Call more = call;
    const Value added = program.shardOf(program.storages.front(), StorageOp::parameter);
    if (llvm::is_contained(launch.getIns(), added) || llvm::is_contained(launch.getOuts(), added))
      return;
    more.reads.push_back(added);
    more.writes.push_back(added);
    EXPECT_EQ(lineOf(program, launch, more), lineOf(program, launch, call))
        << launch.getName().str();
  });
}

TEST_P(RecordTest, AnOperandInThePlaceOfAnotherDoesNotHideIt) {
  forEachLaunch([&](const ScheduledProgram &program, LaunchOp launch, const Call &call) {
    const auto whole = rangesIn(lineOf(program, launch, call));
    for (size_t i = 1; i < call.reads.size(); ++i) {
      Call other = call;
      other.reads[i] = other.reads[0];
      const auto lists = rangesIn(lineOf(program, launch, other));
      for (const std::string &range : whole[0])
        EXPECT_GT(lists[0].count(range), 0u) << launch.getName().str();
      if (whole[0].size() == call.reads.size() && call.reads[i] != call.reads[0])
        EXPECT_NE(lists[0], whole[0]) << launch.getName().str();
    }
  });
}

TEST_P(RecordTest, EveryOperandOfALaunchIsListed) {
  forEachLaunch([&](const ScheduledProgram &program, LaunchOp launch, const Call &call) {
    const auto lists = rangesIn(lineOf(program, launch, call));
    auto listed = [&](const std::multiset<std::string> &list, Value buffer) {
      const ArenaSpan span = program.spanOf(buffer);
      return list.count(std::to_string(span.offset) + ":" + std::to_string(span.bytes)) > 0;
    };
    for (Value buffer : launch.getIns())
      EXPECT_TRUE(listed(lists[0], buffer)) << launch.getName().str();
    for (Value buffer : launch.getOuts())
      EXPECT_TRUE(listed(lists[1], buffer)) << launch.getName().str();
  });
}

INSTANTIATE_TEST_SUITE_P(Modules, RecordTest, testing::ValuesIn(kModules), [](const auto &info) {
  return StringRef(info.param).starts_with("train") ? "TrainStep" : "Cyclic";
});

} // namespace
