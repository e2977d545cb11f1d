//===- SequenceOrder.cpp - dependence on the order of positions -----------===//

#include "passes/global/SequenceOrder.h"

#include "dialect/fsdp/AxisParts.h"
#include "dialect/nn/Zigzag.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Positions are counted by sums of f32.
static constexpr int64_t kMaxCounted = int64_t(1) << 24;

std::optional<PositionTable> mlir::fsdp::findPositionTable(nn::RepeatOp repeat,
                                                           const PositionClass &positions) {
  PositionTable found{repeat.getInput(), 0};
  if (auto slice = found.table.getDefiningOp<nn::SliceOp>(); slice && slice.getDim() == 0)
    found = {slice.getInput(), static_cast<int64_t>(slice.getStart())};
  auto result = cast<RankedTensorType>(repeat.getType());
  nn::ShardingRule rule =
      cast<nn::ShardingRuleOpInterface>(repeat.getOperation()).getShardingRule();
  // Samples come first.
  if (!found.table.getDefiningOp<ReadOp>() ||
      cast<RankedTensorType>(found.table.getType()).getRank() != 2 || result.getRank() != 3 ||
      rule.results[0][1] != rule.operands[0][0] || rule.results[0][2] != rule.operands[0][1] ||
      !positions.contains(repeat, 1) || result.getDimSize(1) >= kMaxCounted)
    return std::nullopt;
  return found;
}

bool mlir::fsdp::takesNumbers(nn::RopeOp rope, const PositionClass &positions) {
  const auto dim = static_cast<int64_t>(rope.getDim());
  return !rope.getPositions() && dim != 0 && positions.contains(rope, dim) &&
         rope.getX().getType().getDimSize(dim) < kMaxCounted;
}

SmallVector<double> mlir::fsdp::countScores(int64_t positions, int64_t window, int64_t ranks,
                                            bool zigzag, bool endsWithKeys) {
  const auto part = static_cast<double>(llvm::divideCeil(positions, ranks));
  const double chunk = part / 2, keys = endsWithKeys ? static_cast<double>(positions)
                                                     : part * static_cast<double>(ranks);
  // Of the queries at positions below `end`. A window begins to leave out keys at its own length.
  auto seenBelow = [&](double end) {
    auto above = [&](double length) {
      const double count = std::max(end - length, 0.0);
      return count * (count + 1) / 2;
    };
    const double seen = above(0) - above(keys), before = static_cast<double>(window);
    return window > 0 ? seen - above(before) + above(keys + before) : seen;
  };
  SmallVector<double> scores(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t half : {0, 1}) {
      const auto number =
          static_cast<double>(zigzag ? nn::zigzagChunk(rank, half, ranks) : 2 * rank + half);
      scores[rank] += seenBelow((number + 1) * chunk) - seenBelow(number * chunk);
    }
  return scores;
}

/// Adds `user` to `found`, and to `ops` and `found` the ops that compute its operand `value`. False
/// if `value` depends on anything but inputs and constants.
bool SequenceOrder::collectOps(Value value, Operation *user, DenseSet<Operation *> &ops,
                               DenseSet<Operation *> &found) const {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<InputOp>(op)) {
    found.insert(user);
    return true;
  }
  if (!op || !isa<nn::ShardingRuleOpInterface>(op) || op->getNumOperands() == 0)
    return op && op->hasTrait<OpTrait::ConstantLike>();
  if (auto constraint = dyn_cast<ConstraintOp>(op); constraint && constraint.getSequenceParallel())
    return false; // which splits positions
  ops.insert(op);
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return collectOps(operand, op, ops, found); });
}

/// The op, or the region whose boundary it is, for a diagnostic of an attention: by the name of its
/// value, in models without names by its own.
static std::string describe(Operation *op) {
  auto quote = [](const std::string &name) { return "'" + name + "'"; };
  auto describeRegion = [&](ArrayAttr over, const char *verb, Value value) {
    return "the manual region over " + llvm::join(spellAxes(getMesh(op), getAxisNames(over)), "+") +
           " that " + verb + " " + quote(nameOf(value));
  };
  if (auto enter = dyn_cast<EnterManualOp>(op)) {
    Value value = enter.getInput(); // behind the constraint of the boundary
    if (auto boundary = value.getDefiningOp<ConstraintOp>(); boundary && boundary.getManual())
      value = boundary.getInput();
    return describeRegion(enter.getOver(), "takes", value);
  }
  if (auto exit = dyn_cast<ExitManualOp>(op))
    return describeRegion(exit.getOver(), "returns", exit.getInput());
  return quote(op->getNumResults() > 0 ? nameOf(op->getResult(0))
                                       : op->getName().getStringRef().str());
}

/// How `op` depends on the order of positions; empty where it does not, as for inputs, parameters
/// and constants.
std::string SequenceOrder::getDependence(Operation *op) const {
  auto hasPositions = [&](Value value) { return positions.find(value) >= 0; };
  if (!llvm::any_of(op->getOperands(), hasPositions) &&
      !llvm::any_of(op->getResults(), hasPositions))
    return "";
  if (isa<InputOp, ReadOp, ConstraintOp, CheckpointOp, YieldOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return "";
  const std::string name = describe(op);
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!ruled)
    return name;
  if (isa<DropoutOp>(op))
    return name + ", whose draws are numbered by positions,";
  const nn::ShardingRule rule = ruled.getShardingRule();
  DenseSet<int64_t> own;
  auto forEachDim = [&](auto visit) {
    rule.forEachTensor(op, [&](Value value, const nn::TensorFactors &tensor) {
      for (auto [dim, factors] : llvm::enumerate(tensor))
        visit(value, static_cast<int64_t>(dim), factors);
    });
  };
  bool merges = false;
  forEachDim([&](Value value, int64_t dim, const nn::DimFactors &factors) {
    if (!positions.contains(value, dim))
      return;
    if (factors.size() == 1)
      own.insert(factors.front());
    else
      merges |= factors.size() > 1;
  });
  forEachDim([&](Value, int64_t, const nn::DimFactors &factors) {
    merges |= factors.size() > 1 &&
              llvm::any_of(factors, [&](int64_t factor) { return own.contains(factor); });
  });
  const bool combines = llvm::any_of(own, [&](int64_t factor) {
    // Rows that are looked up by number are in order.
    return rule.factors[factor].size > 1 &&
           (rule.factors[factor].indexed || rule.factors[factor].kind == nn::FactorKind::whole ||
            rule.factors[factor].kind == nn::FactorKind::combined);
  });
  if (isa<EnterManualOp, ExitManualOp>(op)) // which splits or joins positions
    return merges || combines ? name : "";
  return merges     ? name + ", which splits or merges positions,"
         : combines ? name + " along positions"
                    : "";
}

void SequenceOrder::findWhole(bool inOrder) {
  whole.clear(), users.clear();
  step->walk([&](nn::ShardingRuleOpInterface op) {
    DenseSet<Operation *> ops, found;
    if (inOrder) {
      if (getDependence(op).empty() || isa<nn::AttentionOp, nn::RopeOp, DropoutOp>(*op) ||
          op->getNumOperands() == 0 || !llvm::all_of(op->getOperands(), [&](Value operand) {
            return collectOps(operand, op, ops, found);
          }))
        return;
      ops.insert(op);
      whole.insert_range(ops);
      users.insert_range(found);
      return;
    }
    const nn::ShardingRule rule = op.getShardingRule();
    auto isWhole = [&](int64_t factor) {
      return rule.factors[factor].kind == nn::FactorKind::whole && rule.factors[factor].size > 1;
    };
    for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands))
      for (auto [dim, own] : llvm::enumerate(factors))
        if (llvm::any_of(own, isWhole) && positions.contains(operand, dim)) {
          DenseSet<Operation *> onWay, taken;
          if (collectOps(operand, op, onWay, taken)) {
            whole.insert_range(onWay);
            users.insert_range(taken);
          }
        }
  });
}

std::optional<std::pair<Operation *, std::string>> SequenceOrder::findFault() const {
  std::optional<std::pair<Operation *, std::string>> fault;
  auto isTable = [&](Operation *user) {
    auto repeat = dyn_cast<nn::RepeatOp>(user);
    return repeat && findPositionTable(repeat, positions);
  };
  step->walk([&](Operation *op) {
    auto rope = dyn_cast<nn::RopeOp>(op);
    if (op == step || isWhole(op) || isa<nn::AttentionOp>(op) ||
        (rope && takesNumbers(rope, positions)) ||
        (isa<nn::SliceOp>(op) && llvm::all_of(op->getUsers(), isTable)))
      return WalkResult::advance();
    std::string dependence = getDependence(op);
    if (dependence.empty())
      return WalkResult::advance();
    fault = {op, dependence};
    return WalkResult::interrupt();
  });
  return fault;
}
