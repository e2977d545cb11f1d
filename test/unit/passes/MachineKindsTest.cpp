//===- MachineKindsTest.cpp - what machine files say of ops ---------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "passes/cost/Machine.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace mlir::fsdp::cost;

/// The mnemonics of the ops of our dialects for which `holds`.
template <class Predicate> static std::set<std::string> mnemonicsOf(Predicate holds) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, fsdp::FSDPDialect>();
  std::set<std::string> names;
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if ((op.getDialectNamespace() == "nn" || op.getDialectNamespace() == "fsdp") && holds(op))
      names.insert(op.stripDialect().str());
  return names;
}

// A kind that no launch has would never count, and one that is not listed would be refused.
TEST(MachineKinds, AreTheOpsOfLaunches) {
  const std::set<std::string> ops = mnemonicsOf([](RegisteredOperationName op) {
    if (op.getDialectNamespace() == "nn")
      return !op.hasTrait<OpTrait::IsTerminator>();
    return op.hasTrait<fsdp::InLocalPhase>() && op.hasTrait<fsdp::InScheduledPhase>() &&
           !op.hasInterface<SymbolOpInterface>();
  });
  const std::set<std::string> listed(getLaunchKindNames().begin(), getLaunchKindNames().end());
  EXPECT_EQ(listed.size(), getLaunchKindNames().size()) << "a name is listed twice";
  for (const std::string &op : ops)
    EXPECT_TRUE(listed.count(op)) << op << " is missing in passes/cost/MachineNames.cpp";
  for (const std::string &name : listed)
    EXPECT_TRUE(ops.count(name)) << name << " is no op of a launch";
}

TEST(MachineKinds, OfCollectivesAreOps) {
  const std::set<std::string> ops = mnemonicsOf([](RegisteredOperationName) { return true; });
  for (const std::string &name : getCollectiveNames())
    EXPECT_TRUE(ops.count(name)) << name;
  EXPECT_GT(getCollectiveNames().size(), 5u);
}
