//===- Rematerialize.cpp - which parts of forward are computed again ------===//
//
// Blocks are found by the rule for gathers: a run of reads of one unit, counted where they are
// first used. A block reaches from the first use of its run to that of the next one, so that a sum
// with the residual stream belongs to the preceding block, regardless of its name. The first and
// the last run (embedding and head) are not blocks: the head's backward begins immediately, and the
// embedding keeps little more than tokens.
//
//===----------------------------------------------------------------------===//

#include "base/Numbers.h"
#include "dialect/fsdp/Structure.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_REMATERIALIZEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The parsed option `policy`.
struct Policy {
  bool none = false;
  CheckpointPolicy keep = CheckpointPolicy::full;
  int64_t blocks = 1; ///< of a region
};

/// A run of reads of one unit.
struct Run {
  StringAttr unit;
  Operation *first; ///< that uses one of them
  bool byAuthor;    ///< contains a checkpoint of the model
  int64_t stage;    ///< of `first`
};

struct Rematerialize : fsdp::impl::RematerializePassBase<Rematerialize> {
  using Base::Base;
  void runOnOperation() override;

private:
  FailureOr<Policy> parsePolicy();
};

} // namespace

FailureOr<Policy> Rematerialize::parsePolicy() {
  constexpr base::IntegerRange<int64_t> range = {1, INT64_MAX};
  Policy result;
  StringRef text = policy;
  if (text == "none")
    result.none = true;
  else if (text == "selective")
    result.keep = CheckpointPolicy::selective;
  else if (text != "full" &&
           (!text.consume_front("every:") ||
            !base::parseInteger(std::string_view(text), range, result.blocks).empty()))
    return getOperation().emitError()
           << "--remat got '" << policy << "', expected none, full, selective or every:K with K "
           << range.describe();
  return result;
}

/// Moves every read directly before its first use.
static void sinkReads(Block &body) {
  for (ReadOp read : llvm::to_vector(body.getOps<ReadOp>())) {
    Operation *first = nullptr;
    for (Operation *user : read->getUsers())
      if (Operation *op = body.findAncestorOpInBlock(*user); !first || op->isBeforeInBlock(first))
        first = op;
    if (first)
      read->moveBefore(first);
  }
}

/// The units of the reads that `op` uses or holds, in order.
static SmallVector<StringAttr> unitsOf(Operation *op, const SymbolTable &symbols) {
  SmallVector<StringAttr> units;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto read = operand.getDefiningOp<ReadOp>())
        units.push_back(symbols.lookup<ParamOp>(read.getParam()).getUnitAttr());
  });
  return units;
}

static SmallVector<Run> collectRuns(Block &body, const SymbolTable &symbols) {
  SmallVector<Run> runs;
  for (Operation &op : body) {
    const bool byAuthor = isa<CheckpointOp>(op);
    for (StringAttr unit : unitsOf(&op, symbols))
      if (runs.empty() || runs.back().unit != unit)
        runs.push_back({unit, &op, byAuthor, getStructure(&op).stage});
    if (byAuthor && !runs.empty())
      runs.back().byAuthor = true;
  }
  return runs;
}

/// The op that a run begins with: the first of its reads.
static Operation *beginOf(const Run &run) {
  Operation *begin = run.first;
  while (isa_and_nonnull<ReadOp>(begin->getPrevNode()))
    begin = begin->getPrevNode();
  return begin;
}

/// Makes a checkpoint of the ops from `begin` to the one before `end`. Inputs and constants with
/// other users stay before it, losses and metrics after it.
static void formRegion(const Run &run, CheckpointPolicy policy, Operation *begin, Operation *end) {
  OpBuilder builder(begin);
  Block &outer = *begin->getBlock();
  // A region is computed again by one stage: it ends before the first op of a later stage.
  for (Operation *op = begin; op != end; op = op->getNextNode())
    if (getStructure(op).stage > run.stage) {
      end = op;
      break;
    }
  llvm::SetVector<Operation *> ops;
  SmallVector<Operation *> before, after;
  auto isUsedBehind = [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return !outer.findAncestorOpInBlock(*user)->isBeforeInBlock(end);
    });
  };
  for (Operation *op = begin; op != end; op = op->getNextNode()) {
    if (isa<InputOp>(op) || (isa<arith::ConstantOp>(op) && isUsedBehind(op)))
      before.push_back(op);
    else if (isa<LossOp, MetricOp>(op))
      after.push_back(op);
    else
      ops.insert(op);
  }
  llvm::SmallSetVector<Value, 4> results;
  for (Operation *op : ops)
    for (OpOperand &use : op->getUses())
      if (!ops.contains(outer.findAncestorOpInBlock(*use.getOwner())))
        results.insert(use.get());

  auto checkpoint = CheckpointOp::create(builder, NameLoc::get(run.unit),
                                         ValueRange(results.getArrayRef()).getTypes(), policy);
  Block &body = checkpoint.getBody().emplaceBlock();
  for (Operation *op : before)
    op->moveBefore(checkpoint);
  for (Operation *op : ops)
    op->moveBefore(&body, body.end());
  for (Operation *op : llvm::reverse(after))
    op->moveAfter(checkpoint);
  builder.setInsertionPointToEnd(&body);
  YieldOp::create(builder, checkpoint.getLoc(), results.getArrayRef());
  for (auto [inside, result] : llvm::zip_equal(results, checkpoint.getResults()))
    Value(inside).replaceUsesWithIf(
        result, [&](OpOperand &use) { return !checkpoint->isProperAncestor(use.getOwner()); });
}

/// Returns how many regions `step` has afterwards.
static size_t rematerialize(StepOp step, const Policy &policy, const SymbolTable &symbols) {
  Block &body = step.getBody().front();
  sinkReads(body);
  SmallVector<Run> runs = collectRuns(body, symbols);
  // Ends are those before anything is moved.
  SmallVector<Operation *> begins = llvm::map_to_vector(runs, beginOf);
  const size_t last = runs.empty() ? 0 : runs.size() - 1;
  for (size_t next, first = 1; first < last; first = next) {
    next = first + 1;
    if (runs[first].byAuthor)
      continue;
    while (next < last && !runs[next].byAuthor && runs[next].stage == runs[first].stage &&
           static_cast<int64_t>(next - first) < policy.blocks)
      ++next;
    formRegion(runs[first], policy.keep, begins[first], begins[next]);
  }
  return llvm::range_size(body.getOps<CheckpointOp>());
}

void Rematerialize::runOnOperation() {
  FailureOr<Policy> chosen = parsePolicy();
  if (failed(chosen))
    return signalPassFailure();
  if (chosen->none)
    return;
  SymbolTable symbols(getOperation());
  for (StepOp step : getOperation().getOps<StepOp>()) {
    if (step.getKind() != StepKind::train)
      continue;
    if (rematerialize(step, *chosen, symbols) == 0)
      step.emitWarning() << "nothing is rematerialized: the step '" << step.getSymName()
                         << "' has no unit between the first and the last, which are kept; mark "
                            "regions with 'fsdp.checkpoint'";
  }
}
