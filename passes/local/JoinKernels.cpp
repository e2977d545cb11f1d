//===- JoinKernels.cpp - ops whose kernels are one launch -----------------===//
//
// Two patterns that are not chains of elementwise ops, which fsdp-fuse joins. The gradient of a
// norm adds the cotangent that reaches its operand past the norm, and the sums over rows of the
// result: these would be two more passes over a tensor of the size of the activations. The squares
// of many shards are added up by one launch instead of one for each. A third pattern, a loss with
// its gradient, is in JoinLoss.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "passes/Passes.h"
#include "passes/local/JoinLoss.h"
#include "runtime/program/Limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_JOINKERNELSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Gradients of norms
//===----------------------------------------------------------------------===//

/// True where ranks reduce `gradient` or a value computed from it: then its unit has a budget of
/// gradients that are not reduced yet.
static bool isReduced(Value gradient) {
  return llvm::any_of(gradient.getUsers(), [](Operation *user) {
    return involvesPeers(user) || ((nn::isElementwise(user) || isa<ViewOp, FlattenOp>(user)) &&
                                   isReduced(user->getResult(0)));
  });
}

/// The sum of `total` over all rows, which the kernel of `op` may compute: one of its own unit, or
/// one that is not reduced. Null if there is none.
static nn::ReduceOp findRowSum(nn::ResidualOpInterface op, Value total) {
  const Structure structure = getStructure(op);
  for (Operation *user : total.getUsers()) {
    auto reduce = dyn_cast<nn::ReduceOp>(user);
    if (!reduce || reduce.getKind() != nn::Reduction::sum ||
        reduce.getType() != op.getRowSumType() || reduce->getBlock() != op->getBlock() ||
        reduce->hasAttr(kReportAttrName))
      continue;
    const nn::Notation pattern = reduce.getPattern();
    if (pattern.result != nn::NotationTensor{pattern.operands.front().back()})
      continue;
    const Structure ofSum = getStructure(reduce);
    if (ofSum == structure || (ofSum.in(structure.unit) == structure && !isReduced(reduce)))
      return reduce;
  }
  return nullptr;
}

/// Lets `op` add the other operand of the addition that alone takes its first result, if that is in
/// memory anyway.
static void joinResidual(nn::ResidualOpInterface op) {
  Value own = op->getResult(0);
  if (op.getAdded() || !own.hasOneUse() || op->hasAttr(kReportAttrName))
    return;
  auto sum = dyn_cast<arith::AddFOp>(*own.getUsers().begin());
  if (!sum || sum->getBlock() != op->getBlock() || sum->hasAttr(kReportAttrName))
    return;
  Value residual = sum.getLhs() == own ? sum.getRhs() : sum.getLhs();
  Operation *maker = residual.getDefiningOp();
  if (residual.hasOneUse() || !maker || isa<arith::ConstantOp, nn::RepeatOp>(maker) ||
      !maker->isBeforeInBlock(op))
    return;
  nn::ReduceOp rows = findRowSum(op, sum.getResult());
  OpBuilder builder(op);
  Operation *joined = op.createWith(builder, residual, rows != nullptr);
  setStructure(joined, getStructure(op));
  for (OpResult result : op->getResults().drop_front())
    result.replaceAllUsesWith(joined->getResult(result.getResultNumber()));
  if (rows) {
    rows.getResult().replaceAllUsesWith(joined->getResults().back());
    rows.erase();
  }
  sum.getResult().replaceAllUsesWith(joined->getResult(0));
  sum.erase();
  op->erase();
}

//===----------------------------------------------------------------------===//
// Sums of squares
//===----------------------------------------------------------------------===//

/// The terms of the sum at `sum`, from left to right: those of additions that nothing else uses are
/// taken apart.
static void collectTerms(arith::AddFOp sum, SmallVectorImpl<Value> &terms,
                         SmallVectorImpl<Operation *> &additions) {
  additions.push_back(sum);
  for (Value operand : sum->getOperands()) {
    auto inner = operand.getDefiningOp<arith::AddFOp>();
    if (inner && inner->hasOneUse() && inner->getBlock() == sum->getBlock())
      collectTerms(inner, terms, additions);
    else
      terms.push_back(operand);
  }
}

/// The collective that completes `shard`; null if no peer is involved.
static Operation *collectiveBefore(Value shard) {
  for (Operation *op = shard.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (involvesPeers(op))
      return op;
    if (op->getNumOperands() == 0)
      break;
  }
  return nullptr;
}

/// Joins the sums of squares among the terms of `sum`. Those of the shards that are reduced last
/// remain apart: the others do not wait for them.
static void joinSquares(arith::AddFOp sum) {
  SmallVector<Value> terms;
  SmallVector<Operation *> additions;
  collectTerms(sum, terms, additions);
  Operation *lastReduction = nullptr;
  SmallVector<std::pair<SquareSumOp, Operation *>> squares; // and its last reduction
  SmallVector<Value> others;
  for (Value term : terms) {
    auto square = term.getDefiningOp<SquareSumOp>();
    if (!square || !square->hasOneUse() || square->getBlock() != sum->getBlock()) {
      others.push_back(term);
      continue;
    }
    Operation *reduction = nullptr;
    for (Value shard : square.getInputs())
      if (Operation *op = collectiveBefore(shard);
          op && op->getBlock() == sum->getBlock() && (!reduction || reduction->isBeforeInBlock(op)))
        reduction = op;
    squares.emplace_back(square, reduction);
    if (reduction && (!lastReduction || lastReduction->isBeforeInBlock(reduction)))
      lastReduction = reduction;
  }
  if (squares.size() < 2)
    return;
  OpBuilder builder(sum);
  StructureScope scope(builder, getStructure(sum));
  SmallVector<Value> sums;
  for (bool isLast : {false, true}) {
    SmallVector<Value> shards;
    Location location = sum.getLoc();
    auto add = [&] {
      if (!shards.empty())
        sums.push_back(SquareSumOp::create(builder, location, sum.getType(), shards));
      shards.clear();
    };
    for (auto [square, reduction] : squares) {
      if ((reduction && reduction == lastReduction) != isLast)
        continue;
      if (shards.size() + square.getInputs().size() > limits::kMaxSquaredShards)
        add();
      location = square.getLoc();
      llvm::append_range(shards, square.getInputs());
    }
    add();
  }
  if (sums.size() == squares.size()) { // nothing is joined
    for (Value made : sums)
      made.getDefiningOp()->erase();
    return;
  }
  llvm::append_range(sums, others);
  Value total = sums.front();
  for (Value next : ArrayRef(sums).drop_front())
    total = arith::AddFOp::create(builder, sum.getLoc(), total, next);
  sum.getResult().replaceAllUsesWith(total);
  for (Operation *addition : additions) // each before its operands
    addition->erase();
  for (auto [square, reduction] : squares)
    square->erase();
}

/// True for an addition of numbers that is no term of another one.
static bool isWholeSum(arith::AddFOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  return type && type.getRank() == 0 && type.getElementType().isF64() &&
         !(op->hasOneUse() && isa<arith::AddFOp>(*op->getUsers().begin()) &&
           op->getUsers().begin()->getBlock() == op->getBlock());
}

namespace {
struct JoinKernels : fsdp::impl::JoinKernelsPassBase<JoinKernels> {
  void runOnOperation() override {
    for (SegmentOp segment : getOperation().getOps<SegmentOp>()) {
      SmallVector<arith::AddFOp> sums;
      SmallVector<nn::ResidualOpInterface> kernels;
      for (Operation &op : segment.getBody().front())
        if (auto kernel = dyn_cast<nn::ResidualOpInterface>(op))
          kernels.push_back(kernel);
      llvm::for_each(kernels, joinResidual);
      for (Operation &op : segment.getBody().front())
        if (auto sum = dyn_cast<arith::AddFOp>(op); sum && isWholeSum(sum))
          sums.push_back(sum);
      llvm::for_each(sums, joinSquares);
      joinLosses(segment.getBody().front());
    }
  }
};
} // namespace
