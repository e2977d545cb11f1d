//===- JoinAllReduces.cpp - small all-reduces of one moment are one --------===//
//
// What a small all-reduce takes is the latency of its messages. Those that stand close together and
// need nothing of one another are one, of the values one after the other: these are computed in its
// buffer and used in it, so that nothing is copied.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_JOINALLREDUCESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

struct JoinAllReduces : fsdp::impl::JoinAllReducesPassBase<JoinAllReduces> {
  using Base::Base;

  void runOnOperation() override;
};

/// All-reduces that follow one another.
struct Moment {
  SmallVector<AllReduceOp> members;
  /// What stands before the last member and depends on another one, in order.
  SmallVector<Operation *> dependent;
};

} // namespace

/// True for ops that are loops over elements, without a product, or less: they may stand behind an
/// all-reduce that they do not need.
static bool isLight(Operation *op) {
  if (isa<ViewOp, ShardIndicesOp, ShardSizeOp, ShardOffsetOp, arith::ConstantOp>(op))
    return true;
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel && isPure(op) && !kernel.isContraction() && kernel.getKernelCall().callee.empty();
}

/// True for an all-reduce for which compute waits, of a value that can be computed in a buffer that
/// is given.
static bool mayJoin(AllReduceOp op) {
  Operation *maker = op.getInput().getDefiningOp();
  return op.getType().getRank() != 0 && !op->hasAttr(FSDPDialect::reducesAttrName) &&
         !op->hasAttr(kReportAttrName) && getStructure(op).direction != Direction::update &&
         maker && maker->getBlock() == op->getBlock() && !isMeeting(maker) &&
         !isa<LoadOp, CarryLoadOp, InputOp, ViewOp, FlattenOp, OptimizerStepOp, nn::ConcatOp,
              nn::SliceOp, nn::RearrangeOp, arith::ConstantOp>(maker);
}

static bool areAlike(AllReduceOp a, AllReduceOp b) {
  return a.getKind() == b.getKind() && a.getOver() == b.getOver() &&
         a.getType().getElementType() == b.getType().getElementType() &&
         getStructure(a) == getStructure(b) && a.getInput() != b.getInput();
}

/// `first` and what can be joined to it: between them stand light ops only.
static Moment findMoment(AllReduceOp first, int64_t limit) {
  Moment moment{{first}, {}};
  auto collective = [](AllReduceOp op) { return cast<CollectiveOpInterface>(*op); };
  int64_t bytes = collective(first).getBytes();
  llvm::SetVector<Operation *> behind; // depend on a member
  behind.insert(first);
  SmallVector<Operation *> passed;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    const bool depends = llvm::any_of(
        op->getOperands(), [&](Value operand) { return behind.contains(operand.getDefiningOp()); });
    if (auto next = dyn_cast<AllReduceOp>(op)) {
      // One that comes next to another for which it cannot stand waits its turn.
      if (depends || !mayJoin(next) || !areAlike(first, next) ||
          bytes + collective(next).getBytes() > limit)
        break;
      bytes += collective(next).getBytes();
      moment.members.push_back(next);
      moment.dependent = passed;
      behind.insert(next);
      continue;
    }
    if (!isLight(op))
      break;
    if (depends) {
      behind.insert(op);
      passed.push_back(op);
    }
  }
  return moment;
}

static void join(const Moment &moment) {
  AllReduceOp first = moment.members.front();
  Operation *last = moment.members.back();
  for (Operation *op : llvm::reverse(moment.dependent))
    op->moveAfter(last);
  OpBuilder builder(last);
  StructureScope scope(builder, getStructure(first));
  SmallVector<Value> values;
  int64_t elements = 0;
  for (AllReduceOp op : moment.members) {
    values.push_back(op.getInput());
    elements += op.getType().getNumElements();
  }
  RankedTensorType flat = RankedTensorType::get({elements}, first.getType().getElementType());
  Value all = FlattenOp::create(builder, first.getLoc(), flat, values);
  Value sum =
      AllReduceOp::create(builder, first.getLoc(), first.getKind(), all, first.getOverAttr());
  int64_t offset = 0;
  for (AllReduceOp op : moment.members) {
    op.replaceAllUsesWith(
        ViewOp::create(builder, op.getLoc(), op.getType(), sum, offset).getResult());
    offset += op.getType().getNumElements();
    op.erase();
  }
}

void JoinAllReduces::runOnOperation() {
  getOperation().walk([&](SegmentOp segment) {
    Block &block = segment.getBody().front();
    Operation *next = nullptr;
    for (Operation *op = block.empty() ? nullptr : &block.front(); op; op = next) {
      next = op->getNextNode();
      auto first = dyn_cast<AllReduceOp>(op);
      if (!first || !mayJoin(first))
        continue;
      const Moment moment = findMoment(first, limit.value);
      if (moment.members.size() < 2)
        continue;
      next = moment.members.back()->getNextNode();
      join(moment);
    }
  });
}
