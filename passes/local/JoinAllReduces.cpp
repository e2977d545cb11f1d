//===- JoinAllReduces.cpp - join consecutive small all-reduces ------------===//
//
// The time of a small all-reduce is the latency of its messages. Consecutive ones that do not
// depend on each other become one, of the concatenated values. These are computed and used in its
// buffer, so nothing is copied.
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

/// Consecutive all-reduces that become one.
struct JoinedGroup {
  SmallVector<AllReduceOp> members;
  /// The ops before the last member that depend on another one, in order.
  SmallVector<Operation *> dependent;
};

} // namespace

/// True for ops that are at most loops over elements, without a product: they may be moved after
/// the joined all-reduce.
static bool isLight(Operation *op) {
  if (isa<ViewOp, ShardIndicesOp, ShardSizeOp, ShardOffsetOp, arith::ConstantOp>(op))
    return true;
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  return kernel && isPure(op) && !kernel.isContraction() && kernel.getKernelCall().callee.empty();
}

/// True for an all-reduce that compute waits for, of a value that can be computed in a given
/// buffer.
static bool mayJoin(AllReduceOp op) {
  Operation *maker = op.getInput().getDefiningOp();
  return op.getType().getRank() != 0 && !op->hasAttr(FSDPDialect::reducesAttrName) &&
         !op->hasAttr(kReportAttrName) && getStructure(op).direction != Direction::update &&
         maker && maker->getBlock() == op->getBlock() && !involvesPeers(maker) &&
         !isa<LoadOp, CarryLoadOp, InputOp, ViewOp, FlattenOp, OptimizerStepOp, nn::ConcatOp,
              nn::SliceOp, nn::RearrangeOp, arith::ConstantOp>(maker);
}

static bool areAlike(AllReduceOp a, AllReduceOp b) {
  return a.getKind() == b.getKind() && a.getOver() == b.getOver() &&
         a.getType().getElementType() == b.getType().getElementType() &&
         getStructure(a) == getStructure(b) && a.getInput() != b.getInput();
}

/// `first` and the all-reduces that can be joined to it: only light ops are between them.
static JoinedGroup findGroup(AllReduceOp first, int64_t limit) {
  JoinedGroup group{{first}, {}};
  auto collective = [](AllReduceOp op) { return cast<CollectiveOpInterface>(*op); };
  int64_t bytes = collective(first).getBytes();
  llvm::SetVector<Operation *> behind; // depend on a member
  behind.insert(first);
  SmallVector<Operation *> passed;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    const bool depends = llvm::any_of(
        op->getOperands(), [&](Value operand) { return behind.contains(operand.getDefiningOp()); });
    if (auto next = dyn_cast<AllReduceOp>(op)) {
      // The next group may begin with it.
      if (depends || !mayJoin(next) || !areAlike(first, next) ||
          bytes + collective(next).getBytes() > limit)
        break;
      bytes += collective(next).getBytes();
      group.members.push_back(next);
      group.dependent = passed;
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
  return group;
}

static void join(const JoinedGroup &group) {
  AllReduceOp first = group.members.front();
  Operation *last = group.members.back();
  for (Operation *op : llvm::reverse(group.dependent))
    op->moveAfter(last);
  OpBuilder builder(last);
  StructureScope scope(builder, getStructure(first));
  SmallVector<Value> values;
  int64_t elements = 0;
  for (AllReduceOp op : group.members) {
    values.push_back(op.getInput());
    elements += op.getType().getNumElements();
  }
  RankedTensorType flat = RankedTensorType::get({elements}, first.getType().getElementType());
  Value all = FlattenOp::create(builder, first.getLoc(), flat, values);
  Value sum =
      AllReduceOp::create(builder, first.getLoc(), first.getKind(), all, first.getOverAttr());
  int64_t offset = 0;
  for (AllReduceOp op : group.members) {
    op.replaceAllUsesWith(
        ViewOp::create(builder, op.getLoc(), op.getType(), sum, offset).getResult());
    offset += op.getType().getNumElements();
    op.erase();
  }
}

void JoinAllReduces::runOnOperation() {
  for (SegmentOp segment : getOperation().getOps<SegmentOp>()) {
    Block &block = segment.getBody().front();
    Operation *next = nullptr;
    for (Operation *op = block.empty() ? nullptr : &block.front(); op; op = next) {
      next = op->getNextNode();
      auto first = dyn_cast<AllReduceOp>(op);
      if (!first || !mayJoin(first))
        continue;
      const JoinedGroup group = findGroup(first, limit.value);
      if (group.members.size() < 2)
        continue;
      next = group.members.back()->getNextNode();
      join(group);
    }
  }
}
