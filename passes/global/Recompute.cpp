//===- Recompute.cpp ----------------------------------------------------===//

#include "passes/global/Recompute.h"
#include "dialect/fsdp/Structure.h"
#include "passes/LaunchNames.h"
#include "passes/StagelessOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::isCheap(Operation *op) {
  return nn::isElementwise(op) ||
         isa<nn::RearrangeOp, nn::RepeatOp, ConstraintOp, EnterManualOp, ExitManualOp, PvaryOp>(op);
}

namespace {

class Recompute {
public:
  Recompute(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
            const DenseSet<Value> &kept)
      : block(firstBackward->getBlock()), begin(firstBackward), parameterOnly(parameterOnly),
        kept(kept) {}

  void collectStored();
  void choose();
  void rewrite();

private:
  /// Ops that become part of the kernel that uses their result.
  static bool joinsKernel(Operation *op) { return nn::isElementwise(op) || isa<nn::RepeatOp>(op); }
  bool isForward(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == block && op->isBeforeInBlock(begin);
  }
  bool isRecomputable(Value value) const;
  /// Whether `value` passes from its stage of a pipeline to that of `user`, which keeps it: a stage
  /// recomputes only values that it computes in forward.
  bool isReceived(Value value, Operation *user) {
    return getStructure(value.getDefiningOp()).stage != getStructure(user).stage &&
           !stageless.contains(value.getDefiningOp());
  }
  /// Adds to `missing` the values that must be stored so that `value` can be recomputed; false if
  /// that takes too many ops.
  bool expand(Value value, llvm::SmallSetVector<Value, 4> &missing);
  Value cloneAt(OpBuilder &builder, Value value, int64_t stage, IRMapping &again);

  Block *block;
  Operation *begin;
  const DenseSet<Value> &parameterOnly, &kept;
  SmallVector<Value> candidates; ///< in program order
  DenseSet<Value> stored, recomputed;
  StagelessOps stageless;
};

} // namespace

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Forward values that backward uses: kept from one to the other, except for candidates that are
/// recomputed in the end.
void Recompute::collectStored() {
  DenseSet<Value> usedByKernels, used; // in the stage that computes them
  auto isStored = [&](Value value) {
    return isForward(value) && !value.getDefiningOp<arith::ConstantOp>() &&
           !parameterOnly.contains(value);
  };
  for (Value value : kept)
    if (isStored(value))
      stored.insert(value);
  for (Operation *op = begin; op; op = op->getNextNode())
    for (Value operand : op->getOperands()) {
      if (!isStored(operand))
        continue;
      stored.insert(operand);
      if (isReceived(operand, op))
        continue;
      used.insert(operand);
      if (!joinsKernel(op) && !isa<nn::ReduceOp>(op))
        usedByKernels.insert(operand);
    }
  for (Operation &op : *block)
    for (Value result : op.getResults())
      if (used.contains(result) && !usedByKernels.contains(result) && !kept.contains(result) &&
          isRecomputable(result))
        candidates.push_back(result);
}

bool Recompute::isRecomputable(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && isForward(value) && joinsKernel(op) &&
         llvm::none_of(op->getOperands(),
                       [&](Value operand) { return parameterOnly.contains(operand); });
}

bool Recompute::expand(Value value, llvm::SmallSetVector<Value, 4> &missing) {
  constexpr size_t mostOps = 32;
  llvm::SmallSetVector<Value, 16> again;
  again.insert(value);
  for (size_t next = 0; next < again.size(); ++next)
    for (Value operand : again[next].getDefiningOp()->getOperands()) {
      if (stored.contains(operand) || operand.getDefiningOp<arith::ConstantOp>())
        continue;
      if (isRecomputable(operand) && !isReceived(operand, value.getDefiningOp()))
        again.insert(operand);
      else
        missing.insert(operand);
    }
  return again.size() <= mostOps;
}

void Recompute::choose() {
  // In reverse program order: the values from which a candidate is computed are then still stored.
  for (Value value : llvm::reverse(candidates)) {
    llvm::SmallSetVector<Value, 4> missing;
    if (!expand(value, missing))
      continue;
    int64_t bytes = 0;
    for (Value leaf : missing)
      bytes += bytesOf(leaf);
    if (!missing.empty() && bytes >= bytesOf(value))
      continue;
    stored.erase(value);
    stored.insert_range(missing);
    recomputed.insert(value);
  }
}

Value Recompute::cloneAt(OpBuilder &builder, Value value, int64_t stage, IRMapping &again) {
  if (Value known = again.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    if (!stored.contains(operand) && isRecomputable(operand) && !isReceived(operand, op))
      cloneAt(builder, operand, stage, again);
  Operation *clone = builder.clone(*op, again);
  Structure structure = getStructure(op).again();
  structure.stage = stage;
  setStructure(clone, structure);
  if (std::string name = getLocationName(op->getLoc()); !name.empty())
    clone->setLoc(NameLoc::get(builder.getStringAttr(name + ".grad"), op->getLoc()));
  return again.lookup(value);
}

void Recompute::rewrite() {
  IRMapping again;
  int64_t stage = 0; // of the values in `again`
  for (Operation *op = begin; op; op = op->getNextNode()) {
    // Values recomputed for one kernel are not kept for the next, nor for another stage.
    if (!isa<arith::ConstantOp, ReadOp, GradientOp>(op)) {
      const bool continuesKernel = joinsKernel(op) || isa<nn::ReduceOp>(op);
      if (!continuesKernel || stage != getStructure(op).stage)
        again = IRMapping();
      stage = getStructure(op).stage;
    }
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      if (recomputed.contains(operand.get()) && !isReceived(operand.get(), op))
        operand.set(cloneAt(builder, operand.get(), stage, again));
  }
}

void mlir::fsdp::recomputeInBackward(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
                                     const DenseSet<Value> &kept) {
  Recompute values(firstBackward, parameterOnly, kept);
  values.collectStored();
  values.choose();
  values.rewrite();
}
