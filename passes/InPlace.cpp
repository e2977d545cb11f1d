//===- InPlace.cpp - elementwise launches and optimizer steps -------------===//

#include "passes/InPlace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<MaskPaddingOp, DropoutOp>(op);
}

/// True where every op of `body` takes element i of what has the results' shape to element i, and
/// all results have one shape: the kernel is one loop over their elements.
static bool isOneLoop(Block &body) {
  for (Operation &op : body.without_terminator())
    if (!isElementwise(&op) && !isa<nn::RepeatOp, arith::ConstantOp>(op))
      return false;
  return llvm::all_equal(llvm::map_range(body.getTerminator()->getOperands(), [](Value value) {
    return cast<ShapedType>(value.getType()).getShape();
  }));
}

/// True where `argument` is read element by element only, never broadcast or transposed.
static bool isReadElementwise(Value argument) {
  return llvm::all_of(argument.getUsers(), [](Operation *user) {
    return isElementwise(user) || isa<nn::YieldOp, fsdp::YieldOp>(user);
  });
}

SmallVector<std::pair<int, int>> mlir::fsdp::getInPlacePairs(LaunchOp launch) {
  Block &body = launch.getBody().front();
  Operation *kernel = nullptr;
  for (Operation &op : body.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    if (kernel)
      return {}; // what several ops do together is not known here
    kernel = &op;
  }
  SmallVector<std::pair<int, int>> pairs;
  if (!kernel)
    return pairs;

  auto addPair = [&](Value operand, Value result) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || operand.getType() != result.getType())
      return;
    for (OpOperand &use : result.getUses())
      if (use.getOwner() == body.getTerminator())
        pairs.push_back({static_cast<int>(argument.getArgNumber()),
                         static_cast<int>(use.getOperandNumber())});
  };
  if (auto step = dyn_cast<OptimizerStepOp>(kernel)) {
    addPair(step.getParameter(), step.getNewParameter());
    for (auto [before, after] : llvm::zip_equal(step.getStates(), step.getNewStates()))
      addPair(before, after);
  } else if (auto fused = dyn_cast<nn::FusedOp>(kernel)) {
    Block &inner = fused.getBody().front();
    if (!isOneLoop(inner))
      return pairs;
    for (auto [operand, argument] : llvm::zip_equal(fused.getInputs(), inner.getArguments()))
      if (isReadElementwise(argument))
        for (Value result : fused.getResults())
          addPair(operand, result);
  } else if (isElementwise(kernel)) {
    for (Value operand : kernel->getOperands())
      addPair(operand, kernel->getResult(0));
  }
  return pairs;
}
