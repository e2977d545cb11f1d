//===- StageTransfers.cpp - values that pass between stages ---------------===//

#include "passes/local/stages/StageTransfers.h"

using namespace mlir;
using namespace mlir::fsdp;

StageTransfers StageTransfers::get(const SegmentStages &stages, SegmentOp segment, int64_t ranks,
                                   int64_t numStages) {
  StageTransfers result;
  result.up.resize(numStages);
  result.down.resize(numStages);
  // The last stage that a value passes to in forward, and the first one in backward.
  DenseMap<Value, int64_t> last, first;
  auto rankOf = [&](int64_t stage) { return static_cast<unsigned>(stage % ranks); };
  for (Operation &op : segment.getBody().front()) {
    const StagePlace made = stages.of(&op);
    if (made.kind != StagePlace::part)
      continue;
    for (Value value : op.getResults()) {
      int64_t end = made.of.stage, begin = made.of.stage;
      for (Operation *user : value.getUsers()) {
        const StagePlace used = stages.of(user);
        if (used.kind != StagePlace::part || rankOf(used.of.stage) == rankOf(made.of.stage))
          continue;
        [[maybe_unused]] const bool isLater = used.of.stage > made.of.stage;
        assert((!made.of.backward || (!isLater && used.of.backward)) &&
               "what uses a value of backward is of the same stage or an earlier one");
        end = std::max(end, used.of.stage);
        begin = std::min(begin, used.of.stage);
      }
      // After as many steps as there are other ranks, all have it.
      end = std::min(end, made.of.stage + ranks - 1);
      begin = std::max(begin, made.of.stage - (ranks - 1));
      if (end > made.of.stage)
        last[value] = end;
      if (begin < made.of.stage)
        first[value] = begin;
      RankSet &holders = result.holders[value];
      holders.resize(static_cast<unsigned>(ranks));
      for (int64_t stage = begin; stage <= end; ++stage)
        holders.set(rankOf(stage));
    }
  }
  auto made = [&](StagePart part, const DenseMap<Value, int64_t> &ends,
                  SmallVectorImpl<Value> &sent) {
    for (Operation *op : stages.opsOf(part))
      for (Value value : op->getResults())
        if (ends.contains(value))
          sent.push_back(value);
  };
  for (int64_t stage = 0; stage + 1 < numStages; ++stage) {
    SmallVector<Value> &sent = result.up[stage];
    if (stage > 0)
      for (Value value : result.up[stage - 1])
        if (last.lookup(value) > stage)
          sent.push_back(value);
    made({stage, /*backward=*/false}, last, sent);
  }
  for (int64_t stage = numStages - 1; stage > 0; --stage) {
    SmallVector<Value> &sent = result.down[stage];
    if (stage + 1 < numStages)
      for (Value value : result.down[stage + 1])
        if (first.lookup(value) < stage)
          sent.push_back(value);
    made({stage, /*backward=*/false}, first, sent);
    made({stage, /*backward=*/true}, first, sent);
  }
  return result;
}
