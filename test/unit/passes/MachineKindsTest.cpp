//===- MachineKindsTest.cpp - what machine files say of ops ---------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "passes/cost/Machine.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp::cost;

// A kind that no op has would never count.
TEST(MachineKinds, AreMnemonicsOfOps) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, fsdp::FSDPDialect>();
  auto isOp = [&](const std::string &name) {
    return RegisteredOperationName::lookup(name, &context).has_value();
  };
  int kinds = 0;
  for (const std::string &name : getMachineNames()) {
    std::string error;
    const std::optional<Machine> machine = findMachine(name, 1, error);
    ASSERT_TRUE(machine) << error;
    for (const auto &entry : machine->memoryRatesOfKinds) {
      EXPECT_TRUE(isOp("nn." + entry.first) || isOp("fsdp." + entry.first))
          << name << ": " << entry.first;
      ++kinds;
    }
  }
  EXPECT_GT(kinds, 0);
}
