//===- UpdateRoles.cpp - ranks of the ops behind microbatches -------------===//

#include "passes/local/stages/UpdateRoles.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isScalar(Value value) { return cast<RankedTensorType>(value.getType()).getRank() == 0; }

/// Whether `op` does more than to compute results: it changes outputs, the step state, or tensors
/// that a rank keeps.
static bool hasEffects(Operation *op) {
  return op->getNumResults() == 0 || isa<OptimizerStepOp>(op);
}

/// The storage that `op` accesses; "" for others.
static StringRef storageOf(Operation *op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getStorage();
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getStorage();
  if (auto step = dyn_cast<OptimizerStepOp>(op))
    return step.getStorage();
  return "";
}

RankSet UpdateRoles::constraintOf(Operation *op) const {
  if (auto owned = owners.find(storageOf(op)); owned != owners.end() && owned->second.any())
    return owned->second;
  if (auto load = dyn_cast<CarryLoadOp>(op))
    if (auto known = carried.find(load.getCarried()); known != carried.end()) {
      RankSet rank(static_cast<unsigned>(ranks));
      rank.set(static_cast<unsigned>(known->second.stage % ranks));
      return rank;
    }
  return all();
}

RankSet UpdateRoles::availableTo(Value value, llvm::function_ref<RankSet(Value)> holders) const {
  Operation *op = value.getDefiningOp();
  switch (stages.of(op).kind) {
  case StagePlace::anywhere:
    return all();
  case StagePlace::part:
    return holders(value);
  case StagePlace::update:
    return available.lookup(op);
  }
  llvm_unreachable("all kinds are handled");
}

UpdateRoles::UpdateRoles(const SegmentStages &stages, int64_t ranks, const CarriedStages &carried,
                         const llvm::StringMap<RankSet> &owners,
                         llvm::function_ref<RankSet(Value)> holders)
    : stages(stages), ranks(ranks), carried(carried), owners(owners) {
  // The ranks that can compute an op: those that have its operands, or, where the op has effects,
  // all that are to have these. Scalars are exchanged as soon as possible, so every rank can have
  // them.
  for (Operation *op : stages.getUpdates()) {
    const RankSet allowed = constraintOf(op);
    RankSet common = allowed, any(static_cast<unsigned>(ranks));
    for (Value operand : op->getOperands())
      if (!isScalar(operand) && !hasEffects(op)) {
        common &= availableTo(operand, holders);
        any |= availableTo(operand, holders);
      }
    // Shards of different ranks are exchanged between these.
    any &= allowed;
    available[op] = common.any() ? common : any.any() ? any : allowed;
  }
  // The ranks that must compute an op, from the last op to the first.
  DenseMap<Value, RankSet> needed;
  for (Operation *op : llvm::reverse(stages.getUpdates())) {
    RankSet need(static_cast<unsigned>(ranks));
    if (hasEffects(op))
      need = constraintOf(op);
    for (Value result : op->getResults())
      if (auto known = needed.find(result); known != needed.end())
        need |= known->second;
    if (need.none())
      continue;
    const RankSet &can = available[op];
    RankSet does = need;
    does &= can;
    if (does != need)
      does.set(can.find_first()); // it sends its results to the others
    computing[op] = does;
    for (Value operand : op->getOperands()) {
      RankSet &known =
          needed.try_emplace(operand, RankSet(static_cast<unsigned>(ranks))).first->second;
      known |= does;
    }
  }
  // The exchanged values, and the rounds of their exchanges.
  DenseMap<Value, size_t> readyIn; ///< the round from which on a value is where it is needed
  auto addExchange = [&](Value value, size_t round) {
    auto known = needed.find(value);
    if (known == needed.end())
      return round;
    RankSet has = availableTo(value, holders), lacks = known->second;
    if (auto computed = computing.find(value.getDefiningOp()); computed != computing.end())
      has = computed->second;
    lacks.reset(has);
    if (lacks.none())
      return round;
    if (rounds.size() <= round)
      rounds.resize(round + 1);
    rounds[round].exchanges.push_back({value, has.find_first(), lacks});
    return round + 1;
  };
  SmallVector<std::pair<Operation *, size_t>> roundOf;
  size_t ofOutputs = 0;
  for (Operation *op : stages.getUpdates()) {
    if (!computing.contains(op))
      continue;
    size_t round = 0;
    for (Value operand : op->getOperands()) {
      auto [known, isNew] = readyIn.try_emplace(operand, 0);
      if (isNew && stages.of(operand.getDefiningOp()).kind == StagePlace::part) {
        const size_t ready = addExchange(operand, 0);
        readyIn[operand] = ready;
      }
      round = std::max(round, readyIn.lookup(operand));
    }
    roundOf.emplace_back(op, round);
    if (isa<OutputOp, OutputSumOp>(op))
      ofOutputs = std::max(ofOutputs, round);
    for (Value result : op->getResults()) {
      const size_t ready = addExchange(result, round);
      readyIn[result] = ready;
    }
  }
  // Outputs keep their order, which is that of the log.
  for (auto [op, round] : roundOf) {
    if (isa<OutputOp, OutputSumOp>(op))
      round = ofOutputs;
    if (rounds.size() <= round)
      rounds.resize(round + 1);
    rounds[round].ops.push_back(op);
  }
}
