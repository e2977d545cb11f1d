//===- CheckpointRegions.h - what backward computes again ------*- C++ -*-===//

#ifndef PASSES_GLOBAL_CHECKPOINTREGIONS_H
#define PASSES_GLOBAL_CHECKPOINTREGIONS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::fsdp {

/// Puts the body of `checkpoint` in its place and erases it.
void inlineCheckpoint(CheckpointOp checkpoint);

/// The checkpoints of one step, once their bodies stand in the step itself: which values are kept
/// for backward, and which are computed again.
class CheckpointRegions {
public:
  /// Puts the body of every checkpoint of `step` in its place.
  explicit CheckpointRegions(StepOp step);

  /// What regions take from outside and what they leave, and what their policy keeps of the rest.
  const DenseSet<Value> &getKept() const { return kept; }

  /// Notes where backward of the region of `op` begins, if it has one: at `builder`, which reaches
  /// the ops of a region from the last to the first.
  void beginBackward(Operation *op, OpBuilder &builder);

  /// Replaces what backward, all from `firstBackward` to the end of the block, uses of regions and
  /// is not kept. It is computed again where backward of its region begins, before any read of it:
  /// clones in program order, each handed to `renewReads`, which gives it new ones of the values in
  /// `parameterOnly`. Nothing is computed again that backward does not need. Clones are backward,
  /// in the unit of their op, so that no CSE joins them with forward.
  void recompute(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
                 llvm::function_ref<void(Operation *)> renewReads);

private:
  struct Region {
    SmallVector<Operation *> ops;  ///< in program order, without constants
    Operation *begin = nullptr;    ///< a constant that stands where backward of the region begins
    SmallVector<OpOperand *> uses; ///< in backward, of what is not kept
  };
  void recompute(const Region &region, const DenseSet<Value> &parameterOnly,
                 llvm::function_ref<void(Operation *)> renewReads);

  std::vector<Region> regions;
  DenseMap<Operation *, unsigned> regionOf; ///< an index of `regions`
  DenseSet<Value> kept;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_CHECKPOINTREGIONS_H
