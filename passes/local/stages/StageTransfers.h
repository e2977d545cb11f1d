//===- StageTransfers.h - values that pass between stages -------*- C++ -*-===//

#ifndef PASSES_LOCAL_STAGES_STAGETRANSFERS_H
#define PASSES_LOCAL_STAGES_STAGETRANSFERS_H

#include "passes/local/stages/UpdateRoles.h"

namespace mlir::fsdp {

/// The values that a stage sends: to the next one after its forward, to the previous one after its
/// backward. A value that is needed further away passes through the stages between, so that between
/// two ranks and in one direction values are sent in the order in which they are received, whatever
/// the order of microbatches.
class StageTransfers {
public:
  /// Stage i is computed by rank i modulo `ranks`.
  static StageTransfers get(const SegmentStages &stages, SegmentOp segment, int64_t ranks,
                            int64_t numStages);

  int64_t getNumStages() const { return static_cast<int64_t>(up.size()); }
  /// The values that the rank of `part` receives before it, and those that it sends: first the
  /// received ones, then those that forward has computed for backward, then those that the part
  /// computes, in order.
  ArrayRef<Value> into(StagePart part) const {
    const int64_t from = part.stage + (part.backward ? 1 : -1);
    return from < 0 || from >= getNumStages() ? ArrayRef<Value>() : outOf({from, part.backward});
  }
  ArrayRef<Value> outOf(StagePart part) const {
    return part.backward ? down[part.stage] : up[part.stage];
  }
  /// The ranks that have `value`, which a part computes.
  RankSet holdersOf(Value value) const { return holders.lookup(value); }

private:
  SmallVector<SmallVector<Value>> up, down; ///< by the stage that sends
  DenseMap<Value, RankSet> holders;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_STAGES_STAGETRANSFERS_H
