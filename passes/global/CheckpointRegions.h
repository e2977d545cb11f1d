//===- CheckpointRegions.h - recomputation of checkpoints -------*- C++ -*-===//

#ifndef PASSES_GLOBAL_CHECKPOINTREGIONS_H
#define PASSES_GLOBAL_CHECKPOINTREGIONS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::fsdp {

/// Replaces `checkpoint` by its body.
void inlineCheckpoint(CheckpointOp checkpoint);

/// The checkpoints of one step, after their bodies have replaced them: which values are kept for
/// backward, and which are recomputed.
class CheckpointRegions {
public:
  /// Replaces every checkpoint of `step` by its body.
  explicit CheckpointRegions(StepOp step);

  /// The inputs and results of regions, and the other values that their policy keeps.
  const DenseSet<Value> &getKept() const { return kept; }

  /// Records, at the position of `builder`, where backward of the region of `op` begins, if `op` is
  /// in a region, and where backward of another region ends. Ops of a region are visited from the
  /// last to the first.
  void beginBackward(Operation *op, OpBuilder &builder);

  /// Replaces the values of regions that backward, from `firstBackward` to the end of the block,
  /// uses and that are not kept. They are recomputed where backward of their region begins, before
  /// any read of it: clones in program order, each passed to `renewReads`, which gives it new
  /// values for those in `parameterOnly`. Only values that backward needs are recomputed. Clones
  /// are backward, in the unit of their op, so that no CSE joins them with forward.
  ///
  /// Kept values keep their sharding: ops in the backward of a region that may use them in another
  /// sharding (all except elementwise ops) use an identity created there, so that a gather of
  /// forward is repeated and its result is not kept.
  void recompute(Operation *firstBackward, const DenseSet<Value> &parameterOnly,
                 llvm::function_ref<void(Operation *)> renewReads);

private:
  struct Region {
    SmallVector<Operation *> ops;  ///< in program order, without constants
    Operation *begin = nullptr;    ///< a constant that marks where backward of the region begins
    Operation *end = nullptr;      ///< another, where it ends; null for the end of the block
    SmallVector<OpOperand *> uses; ///< uses in backward of values that are not kept
  };
  void recompute(const Region &region, const DenseSet<Value> &parameterOnly,
                 llvm::function_ref<void(Operation *)> renewReads);

  void renewKept(const Region &region, const DenseSet<Value> &parameterOnly);

  std::vector<Region> regions;
  Region *current = nullptr;                ///< whose backward is being built
  DenseMap<Operation *, unsigned> regionOf; ///< an index of `regions`
  DenseSet<Value> kept;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_CHECKPOINTREGIONS_H
