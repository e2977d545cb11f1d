//===- StepPartitioner.h - one step, from global to local -------*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_STEPPARTITIONER_H
#define PASSES_LOCAL_PARTITION_STEPPARTITIONER_H

#include "dialect/fsdp/Structure.h"
#include "passes/local/partition/LocalValues.h"
#include "passes/local/partition/StorageLayout.h"
#include "passes/sharding/StepShardings.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fsdp {

/// The microbatches in which gradients are reduced over ranks; `automatic`: each for storages that
/// are split, the last one for replicated ones.
enum class AccumulateReduce { automatic, each, last };
/// How often the unit of a parameter with several distant uses is reduced: for each
/// use, or once, when all terms of the gradient are added up.
enum class TiedGradients { each, once };

/// Builds the segment of one step. The ops of the step are taken in order; the inputs of an op (a
/// gathered parameter, a value in another sharding) are created directly before it, and gradients
/// are
/// reduced right after the op that completes them.
class StepPartitioner {
public:
  /// Ops are built at `builder`, which is in the segment.
  StepPartitioner(StepOp step, const StepShardings &shardings, const PaddedShapes &padded,
                  const StorageLayout &layout, AccumulateReduce accumulateReduce,
                  TiedGradients tiedGradients, OpBuilder &builder);

  LogicalResult run();

private:
  /// The gradients of the members of one storage, which are reduced together.
  struct Reduction {
    Storage *storage;
    /// One value per member; null for a member that the user leaves out.
    SmallVector<Value> gradients;
    /// The values of one reduction: all gradients, or, for parameters that are used far apart, the
    /// terms of each use. One value per member; null where a member has no term.
    SmallVector<SmallVector<Value>> parts;
    /// This rank's sum of the previous parts of each stage.
    llvm::SmallMapVector<int64_t, Value, 1> stages = {};
    /// The sum of all of them, once the last part is reduced.
    Value shard = {};
  };
  /// A complete part, and its user.
  struct Complete {
    Reduction *reduction;
    unsigned part;
    Operation *user;
  };

  LogicalResult convert(Operation *op);

  // LocalOps.cpp: compute.
  IntegerAttr takeMicrobatches(SmallVectorImpl<StringAttr> &axes) const;
  void convertInput(InputOp input);
  /// Rejects `op`, which depends on the samples of a rank in a microbatch, if these, over `axes` of
  /// ranks, are not the samples that the rank loads.
  void verifyLoaded(Operation *op, ArrayRef<StringAttr> axes);
  void localizeSamples(MaskSamplesOp global, MaskSamplesOp op, int64_t size, ShardingAttr sharding);
  void localizeDraws(DropoutOp global, DropoutOp op, RankedTensorType whole, ShardingAttr sharding);
  void convertCompute(Operation *op);
  /// Replaces `op`, split along its factor `factor`, by its ops for one rank (SplitOpInterface).
  void convertSplit(Operation *op, const nn::ShardingRule &rule, int64_t factor,
                    const OpSplit &split, ArrayRef<LocalValue> operands);
  /// An op on scalars without a sharding rule: the same on every rank.
  void convertCarryLoad(CarryLoadOp load);
  void convertCarryStore(CarryStoreOp store);
  void convertScalar(Operation *op);
  void convertSplitMean(nn::ReduceOp op, Operation *local, ArrayRef<StringAttr> axes,
                        ArrayRef<Padding> padding);
  /// True where factor `factor` of `op` is padded, or does not divide over its axes.
  bool isUneven(Operation *op, const nn::ShardingRule &rule, const OpSplit &split,
                int64_t factor) const;
  /// The contents of the padding of a result of `op` with the factors `result`.
  SmallVector<Padding, 4> paddingOf(Operation *op, const nn::ShardingRule &rule,
                                    ArrayRef<LocalValue> operands,
                                    const nn::TensorFactors &result) const;
  /// Masks the padding along factors that `op` reduces over unevenly.
  void maskPadding(Operation *op, const nn::ShardingRule &rule, const OpSplit &split,
                   MutableArrayRef<LocalValue> operands);

  // Manual.cpp
  void convertEnter(EnterManualOp enter);
  void convertExit(ExitManualOp exit);
  void convertManualCollective(Operation *op);
  /// The operand of `op`, an op in local terms, as it takes it.
  LocalValue takeOperand(Operation *op);

  // Gathers.cpp
  void groupReads();
  LogicalResult materialize(ReadOp read);
  Value gather(Storage *storage, ReadOp read);

  // Gradients.cpp
  /// Finds the values to reduce, and the op after which each is complete.
  LogicalResult collectReductions();
  /// Notes that `user` (an update or a norm) needs the reduced gradients of `params`; returns one
  /// reduction per storage. With `complete` every member of a storage must be among them.
  FailureOr<SmallVector<Reduction *>> addReductions(Operation *user, ArrayRef<Attribute> params,
                                                    ValueRange gradients, bool complete);
  void splitIntoParts(Reduction &reduction);
  bool splitIntoParts(Reduction &reduction, bool isJoined, bool byStage);
  void reduce(Reduction &reduction, unsigned part, Operation *last, Operation *user);
  /// True where the gradients of `storage` are reduced over ranks in each microbatch.
  bool reducesEach(Storage *storage) const;
  LocalValue withZeroPadding(Value gradient, LocalValue local);
  Value reduceAlongDimension(Reduction &reduction, Value gradient, Operation *user);
  Value reduceStored(Reduction &reduction, ArrayRef<Value> gradients, Operation *user);
  Value accumulate(Value sum, SmallVectorImpl<StringAttr> &partial, Storage *storage);
  /// How `member` is split in compute.
  ShardingAttr computeSharding(const Storage::Member &member) const;
  /// The axes that the gradients of all members are partial over, if they are alike and split as
  /// the members are.
  std::optional<SmallVector<StringAttr>> commonPartialAxes(Storage *storage,
                                                           ArrayRef<Value> gradients) const;

  // Optimizer.cpp
  LogicalResult verifyUpdates();
  void convertNorm(GlobalNormOp norm);
  void convertUpdate(UpdateOp update);
  Value loadShard(Storage *storage, Location loc);
  void storeCopy(Storage *storage, Value shard, Location loc);

  Location nameLoc(Storage *storage, StringRef suffix, Location loc) const;
  /// The structure of `op`, in the unit of `storage`.
  Structure structureOf(Storage *storage, Operation *op) const;

  StepOp step;
  MeshAttr mesh;
  const StepShardings &shardings;
  const PaddedShapes &padded;
  const StorageLayout &layout;
  AccumulateReduce accumulateReduce;
  TiedGradients tiedGradients;
  OpBuilder &builder;
  LocalValues values;
  /// The number of the group of each read: reads of one storage with one number share a gather.
  DenseMap<Operation *, unsigned> gatherGroups;
  /// By storage, and by the group and the stage of the reads.
  DenseMap<std::pair<Storage *, std::pair<unsigned, int64_t>>, Value> gathers;
  /// Values gathered over some of the axes only, and kept from forward to backward of a stage.
  DenseMap<std::pair<Storage *, int64_t>, Value> keptParts;
  SmallVector<std::unique_ptr<Reduction>> reductions;
  /// The parts that are complete after an op, with their users.
  DenseMap<Operation *, SmallVector<Complete>> completedBy;
  /// Sums of terms that are reduced separately: not an op of the segment.
  DenseSet<Operation *> elided;
  DenseMap<Operation *, SmallVector<Reduction *>> normReductions;
  DenseMap<Storage *, Reduction *> updateReductions;
  llvm::SetVector<Storage *> updated;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_PARTITION_STEPPARTITIONER_H
