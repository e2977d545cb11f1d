//===- InPlace.cpp - operands that kernels may overwrite ------------------===//

#include "passes/scheduled/InPlace.h"

#include "dialect/fsdp/UpdateGroup.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isElementwise(Operation *op) {
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel && kernel.isElementwise();
}

/// True if every op of `body` computes element i of its result from element i of operands of the
/// results' shape; a reduction may end it. The kernel is then one loop nest over those elements. A
/// preceding product has completed each element when the loops reach it.
static bool isOneLoop(Block &body) {
  ArrayRef<int64_t> loops;
  for (Value value : body.getTerminator()->getOperands()) {
    auto reduce = value.getDefiningOp<nn::ReduceOp>();
    auto type = cast<ShapedType>(reduce ? reduce.getInput().getType() : value.getType());
    if (!loops.empty() && type.getShape() != loops)
      return false;
    loops = type.getShape();
  }
  return llvm::all_of(body.without_terminator(), [](Operation &op) {
    return isElementwise(&op) ||
           isa<nn::RepeatOp, nn::ReduceOp, nn::EinsumOp, arith::ConstantOp>(op);
  });
}

/// True if a loop reads element i of `argument`, which has the shape of the loops, only for element
/// i of the values that depend on it: no op in between moves elements.
static bool isReadElementwise(Value argument) {
  llvm::SetVector<Value> values;
  values.insert(argument);
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isElementwise(user))
        values.insert(user->getResult(0));
      else if (!isa<nn::YieldOp>(user) && !(isa<nn::ReduceOp>(user) && values[i] != argument))
        return false;
    }
  return true;
}

SmallVector<std::pair<int, int>> mlir::fsdp::getInPlacePairs(LaunchOp launch) {
  Block &body = launch.getBody().front();
  Operation *kernel = nullptr;
  for (Operation &op : body.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    if (kernel && !(isa<OptimizerStepOp>(kernel) && isa<OptimizerStepOp>(op)))
      return {}; // the combined accesses of several ops are unknown here
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
        pairs.push_back(
            {static_cast<int>(argument.getArgNumber()), static_cast<int>(use.getOperandNumber())});
  };
  if (isa<OptimizerStepOp>(kernel)) { // those of a group work on separate storages
    for (OptimizerStepOp step : getUpdates(launch)) {
      addPair(step.getParameter(), step.getNewParameter());
      for (auto [before, after] : llvm::zip_equal(step.getStates(), step.getNewStates()))
        addPair(before, after);
    }
  } else if (auto fused = dyn_cast<nn::FusedOp>(kernel)) {
    Block &inner = fused.getBody().front();
    if (!isOneLoop(inner))
      return pairs;
    // A product is computed in the buffer of the first result, before other operands are read.
    bool begins = !inner.getOps<nn::EinsumOp>().empty();
    auto isOfResult = [&](Value operand) {
      return llvm::is_contained(fused.getResultTypes(), operand.getType());
    };
    for (auto [operand, argument] : llvm::zip_equal(fused.getInputs(), inner.getArguments()))
      if (operand.hasOneUse() && isOfResult(operand) && isReadElementwise(argument))
        for (auto [result, value] :
             llvm::zip_equal(fused.getResults(), inner.getTerminator()->getOperands()))
          if (!value.getDefiningOp<nn::ReduceOp>() &&
              !(begins && result == fused.getResults().front()))
            addPair(operand, result);
  } else if (isElementwise(kernel)) {
    for (Value operand : kernel->getOperands())
      addPair(operand, kernel->getResult(0));
  } else if (auto call = dyn_cast<nn::KernelOpInterface>(kernel)) {
    for (auto [operand, result] : call.getInPlacePairs())
      if (operand < kernel->getNumOperands() && result < kernel->getNumResults()) // some: optional
        addPair(kernel->getOperand(operand), kernel->getResult(result));
  }
  return pairs;
}
