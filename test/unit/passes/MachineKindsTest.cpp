//===- MachineKindsTest.cpp - what machine files say of ops ---------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "passes/cost/Machine.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp::cost;

TEST(MachineKinds, OfCollectivesAreOps) {
  MLIRContext context;
  context.loadDialect<fsdp::FSDPDialect>();
  for (const std::string &name : getCollectiveNames())
    EXPECT_TRUE(RegisteredOperationName::lookup("fsdp." + name, &context)) << name;
  EXPECT_GT(getCollectiveNames().size(), 5u);
}
