//===- JoinLoss.cpp - a loss and its gradient in one launch ---------------===//
//
// The cotangent of logits needs the sum of the exponentials of its row, and the cotangent of the
// loss, which says how rows are counted and scaled. Where that does not depend on the loss, both
// can be computed while a row is at hand: the logits, by far the largest tensor of a model, are
// then read once instead of twice.
//
//===----------------------------------------------------------------------===//

#include "passes/local/JoinLoss.h"

#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The gradient of `loss` that its kernel may compute; null if there is none. Other ops that read
/// the logits come before `loss`: behind it the gradient may be in their place.
static nn::CrossEntropyGradOp findGradient(nn::RowLossOpInterface loss) {
  Value logits = loss->getOperand(0), labels = loss->getOperand(1);
  nn::CrossEntropyGradOp found;
  for (Operation *user : logits.getUsers()) {
    if (user == loss)
      continue;
    auto gradient = dyn_cast<nn::CrossEntropyGradOp>(user);
    if (!found && gradient && gradient->getBlock() == loss->getBlock() &&
        gradient.getLabels() == labels && gradient.getCount() == loss.getClasses() &&
        gradient.getLogits() == logits && loss.isLogSumExp(gradient.getLogSumExp())) {
      found = gradient;
      continue;
    }
    Operation *before = loss->getBlock()->findAncestorOpInBlock(*user);
    if (!before || !before->isBeforeInBlock(loss))
      return {};
  }
  return found;
}

/// Adds the ops to `moved`, operands first, that must come before `loss` if it uses `value`. False
/// if they cannot: they depend on it, act on something, wait for other ranks, or are larger than
/// `most` elements.
static bool collectMoved(Value value, Operation *loss, int64_t most,
                         llvm::SetVector<Operation *> &moved) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loss->getBlock() || op->isBeforeInBlock(loss) || moved.contains(op))
    return true;
  if (op == loss || !isMemoryEffectFree(op) || involvesPeers(op) || op->getNumRegions() != 0 ||
      op->hasAttr(kReportAttrName))
    return false;
  for (Type type : op->getResultTypes())
    if (cast<RankedTensorType>(type).getNumElements() > most)
      return false;
  for (Value operand : op->getOperands())
    if (!collectMoved(operand, loss, most, moved))
      return false;
  moved.insert(op);
  return true;
}

/// Erases `op`, if nothing uses it, and the ops that only it uses.
static void eraseUnused(Operation *op) {
  llvm::SetVector<Operation *> candidates;
  candidates.insert(op);
  while (!candidates.empty()) {
    Operation *next = candidates.pop_back_val();
    if (!isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        candidates.insert(maker);
    next->erase();
  }
}

static void joinGradient(nn::RowLossOpInterface loss) {
  if (loss.getUpstream() || loss->hasAttr(kReportAttrName))
    return;
  nn::CrossEntropyGradOp gradient = findGradient(loss);
  if (!gradient || gradient->hasAttr(kReportAttrName))
    return;
  const Structure structure = getStructure(loss), ofGradient = getStructure(gradient);
  if (ofGradient.stage != structure.stage || ofGradient.microbatch != structure.microbatch)
    return;
  Value upstream = gradient.getDLoss();
  Operation *logSumExp = gradient.getLogSumExp().getDefiningOp();
  llvm::SetVector<Operation *> moved;
  if (!collectMoved(upstream, loss, gradient.getDLoss().getType().getNumElements(), moved))
    return;
  for (Operation *op : moved) {
    op->moveBefore(loss);
    if (!isa<arith::ConstantOp>(op)) // those have the structure of their users
      setStructure(op, structure);
  }
  OpBuilder builder(loss);
  Operation *joined = loss.createWith(builder, upstream);
  setStructure(joined, structure);
  gradient.getResult().replaceAllUsesWith(joined->getResults().back());
  gradient.erase();
  for (OpResult result : loss->getResults())
    result.replaceAllUsesWith(joined->getResult(result.getResultNumber()));
  if (logSumExp != loss)
    eraseUnused(logSumExp);
  loss.erase();
}

void mlir::fsdp::joinLosses(Block &block) {
  SmallVector<nn::RowLossOpInterface> losses;
  for (Operation &op : block)
    if (auto loss = dyn_cast<nn::RowLossOpInterface>(op))
      losses.push_back(loss);
  llvm::for_each(losses, joinGradient);
}
