//===- UpdateRoles.h - ranks of the ops behind microbatches -----*- C++ -*-===//

#ifndef PASSES_LOCAL_STAGES_UPDATEROLES_H
#define PASSES_LOCAL_STAGES_UPDATEROLES_H

#include "passes/local/stages/SegmentStages.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::fsdp {

/// Some of the ranks along the axis of a pipeline.
using RankSet = llvm::SmallBitVector;

/// A value of the update that ranks need that do not have it.
struct Exchange {
  Value value;
  int64_t from = 0; ///< the first rank that has it
  RankSet to;       ///< those that need it and do not have it
  bool isScalar() const { return cast<RankedTensorType>(value.getType()).getRank() == 0; }
};

/// The ops of kind `update` of a segment, in rounds: those of a round need nothing that is
/// exchanged in it or later. Each op is computed by the ranks that need it, if they have its
/// operands: outputs and the advance of the step by all, an update by the owners of the storage.
/// Values that ranks need from others, such as a loss or the squares of gradients, are exchanged,
/// scalars of one round together.
class UpdateRoles {
public:
  struct Round {
    SmallVector<Operation *> ops;
    SmallVector<Exchange> exchanges; ///< after the ops
  };

  /// `holders`: the ranks that have a value of a part; `owners`: those that access a storage, by
  /// name; empty for one that no part accesses.
  UpdateRoles(const SegmentStages &stages, int64_t ranks, const CarriedStages &carried,
              const llvm::StringMap<RankSet> &owners, llvm::function_ref<RankSet(Value)> holders);

  ArrayRef<Round> getRounds() const { return rounds; }
  bool computes(int64_t rank, Operation *op) const {
    auto known = computing.find(op);
    return known != computing.end() && known->second.test(static_cast<unsigned>(rank));
  }

private:
  RankSet all() const { return RankSet(static_cast<unsigned>(ranks), true); }
  RankSet constraintOf(Operation *op) const;
  RankSet availableTo(Value value, llvm::function_ref<RankSet(Value)> holders) const;

  const SegmentStages &stages;
  int64_t ranks;
  const CarriedStages &carried;
  const llvm::StringMap<RankSet> &owners;
  DenseMap<Operation *, RankSet> available; ///< ranks that need no exchange to compute an op
  DenseMap<Operation *, RankSet> computing;
  SmallVector<Round> rounds;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_STAGES_UPDATEROLES_H
