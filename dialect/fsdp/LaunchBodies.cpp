//===- LaunchBodies.cpp ---------------------------------------------------===//

#include "dialect/fsdp/LaunchBodies.h"

using namespace mlir;
using namespace mlir::fsdp;

static Block &bodyOf(LaunchOp launch) { return launch.getBody().front(); }

/// True if the operands are the same arguments of their blocks, or results of ops at the same
/// places of `before` and `otherBefore`.
static bool haveEqualOperands(Operation *one, Operation *other, ArrayRef<Operation *> before,
                              ArrayRef<Operation *> otherBefore) {
  return llvm::all_of(llvm::zip_equal(one->getOperands(), other->getOperands()), [&](auto pair) {
    auto [value, otherValue] = pair;
    auto argument = dyn_cast<BlockArgument>(value),
         otherArgument = dyn_cast<BlockArgument>(otherValue);
    if (argument || otherArgument)
      return argument && otherArgument && argument.getArgNumber() == otherArgument.getArgNumber();
    auto result = cast<OpResult>(value), otherResult = cast<OpResult>(otherValue);
    return result.getResultNumber() == otherResult.getResultNumber() &&
           llvm::find(before, result.getOwner()) - before.begin() ==
               llvm::find(otherBefore, otherResult.getOwner()) - otherBefore.begin();
  });
}

bool mlir::fsdp::haveEqualBodies(LaunchOp one, LaunchOp other) {
  Block &body = bodyOf(one), &otherBody = bodyOf(other);
  if (body.getArgumentTypes() != otherBody.getArgumentTypes())
    return false;
  SmallVector<Operation *, 8> before, otherBefore;
  auto otherOp = otherBody.begin();
  for (Operation &op : body) {
    if (otherOp == otherBody.end())
      return false;
    Operation &against = *otherOp++;
    if (op.getName() != against.getName() ||
        op.getRawDictionaryAttrs() != against.getRawDictionaryAttrs() ||
        op.getNumOperands() != against.getNumOperands() ||
        op.getResultTypes() != against.getResultTypes() ||
        op.getNumRegions() != against.getNumRegions() ||
        !op.getName().compareOpProperties(op.getPropertiesStorage(),
                                          against.getPropertiesStorage()) ||
        !haveEqualOperands(&op, &against, before, otherBefore))
      return false;
    for (auto [region, otherRegion] : llvm::zip_equal(op.getRegions(), against.getRegions()))
      if (!OperationEquivalence::isRegionEquivalentTo(&region, &otherRegion,
                                                      OperationEquivalence::IgnoreLocations))
        return false;
    before.push_back(&op);
    otherBefore.push_back(&against);
  }
  return otherOp == otherBody.end();
}

llvm::hash_code mlir::fsdp::hashBody(LaunchOp launch) {
  llvm::hash_code code = llvm::hash_value(0);
  for (Operation &op : bodyOf(launch))
    code = llvm::hash_combine(code, op.getName(), op.getRawDictionaryAttrs(), op.hashProperties());
  return code;
}
