//===- ConcatGradients.cpp -----------------------------------------------------===//

#include "passes/global/ConcatGradients.h"
#include "dialect/fsdp/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The terms of a sum that nothing else uses, all of one stage: each stage of a pipeline reduces
/// its own terms.
struct PaddedSum {
  SmallVector<nn::PadOp> pads;
  SmallVector<Operation *> sums; ///< each after those that add its terms

  bool collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto pad = dyn_cast_or_null<nn::PadOp>(op)) {
      pads.push_back(pad);
      return pad->hasOneUse() && getStructure(pad).stage == getStructure(pads.front()).stage;
    }
    auto add = dyn_cast_or_null<arith::AddFOp>(op);
    if (!add || (!sums.empty() && !add->hasOneUse()))
      return false;
    sums.insert(sums.begin(), add);
    return collect(add.getLhs()) && collect(add.getRhs());
  }

  /// Sorts the terms by their places.
  bool fillWithoutGap() {
    auto dim = pads.front().getDim();
    if (llvm::any_of(pads, [&](nn::PadOp pad) { return pad.getDim() != dim; }))
      return false;
    llvm::sort(pads, [](nn::PadOp a, nn::PadOp b) { return a.getLow() < b.getLow(); });
    int64_t end = 0;
    for (nn::PadOp pad : pads) {
      if (static_cast<int64_t>(pad.getLow()) != end)
        return false;
      end += cast<RankedTensorType>(pad.getInput().getType()).getDimSize(dim);
    }
    return end == cast<RankedTensorType>(pads.front().getType()).getDimSize(dim);
  }
};

} // namespace

void mlir::fsdp::concatenateGradients(Operation *first) {
  // From the last to the first, so that whole sums come before the sums in them.
  for (Operation *op = &first->getBlock()->back(), *previous; op && op != first; op = previous) {
    previous = op->getPrevNode();
    PaddedSum sum;
    if (!isa<arith::AddFOp>(op) || !sum.collect(op->getResult(0)) || !sum.fillWithoutGap())
      continue;
    SmallVector<Value> pieces;
    for (nn::PadOp pad : sum.pads)
      pieces.push_back(pad.getInput());
    OpBuilder builder(op);
    StructureScope scope(builder, getStructure(op));
    auto joined = nn::ConcatOp::create(builder, op->getLoc(), op->getResult(0).getType(), pieces,
                                       sum.pads.front().getDim());
    op->replaceAllUsesWith(ValueRange{joined.getResult()});
    previous = joined;
    for (Operation *dead : llvm::reverse(sum.sums))
      dead->erase();
    for (nn::PadOp pad : sum.pads)
      pad.erase();
  }
}
