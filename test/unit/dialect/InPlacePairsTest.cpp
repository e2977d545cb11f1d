//===- InPlacePairsTest.cpp - every pair that may share bytes is listed ---===//

#include "test/unit/InPlacePairs.h"
#include "dialect/fsdp/FSDPDialect.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::fsdp;
using ::fsdp::test::describe;
using ::fsdp::test::InPlacePair;

namespace {

/// The pairs of registered ops, collectives or others. They do not depend on operands and
/// attributes, so an empty op is queried.
std::set<InPlacePair> findPairs(bool ofCollectives) {
  MLIRContext context;
  context.loadDialect<FSDPDialect, nn::NNDialect>();
  std::set<InPlacePair> pairs;
  int asked = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (!name.hasInterface<nn::KernelOpInterface>() ||
        name.hasInterface<CollectiveOpInterface>() != ofCollectives)
      continue;
    ++asked;
    OperationState state(UnknownLoc::get(&context), name.getStringRef());
    Operation *op = Operation::create(state);
    for (auto [operand, result] : cast<nn::KernelOpInterface>(op).getInPlacePairs())
      pairs.insert({name.getStringRef().str(), operand, result});
    op->destroy();
  }
  EXPECT_GT(asked, 0);
  return pairs;
}

TEST(InPlacePairs, OfKernelsAreListed) {
  EXPECT_EQ(describe(findPairs(/*ofCollectives=*/false)), describe(::fsdp::test::kKernelPairs));
}

TEST(InPlacePairs, OfCollectivesAreListed) {
  EXPECT_EQ(describe(findPairs(/*ofCollectives=*/true)), describe(::fsdp::test::kCollectivePairs));
}

} // namespace
