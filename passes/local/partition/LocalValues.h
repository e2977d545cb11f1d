//===- LocalValues.h - one rank's part of each global value -----*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_LOCALVALUES_H
#define PASSES_LOCAL_PARTITION_LOCALVALUES_H

#include "dialect/fsdp/Manual.h"
#include "passes/reshard/Reshard.h"
#include "passes/sharding/DimensionClasses.h"
#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/OpSplit.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace mlir::fsdp {

/// The contents of the padding along one dimension of a value, if it has any: after the last
/// element of a dimension that is split unevenly or padded, at every position along the others.
enum class Padding {
  repeats, ///< copies of true elements, as in the rows past the end of a batch: finite if these are
  zeros,
  unknown, ///< computed from zeros: may be NaN
};

/// One rank's part of a global value.
struct LocalValue {
  Value value;
  ShardingAttr sharding;
  /// One per dimension; empty if all repeat.
  SmallVector<Padding, 4> padding = {};

  Padding getPadding(int64_t dim) const {
    return padding.empty() ? Padding::repeats : padding[dim];
  }
};

/// The local values of one step while it is partitioned, each in every requested sharding. New ops
/// are created at `builder`, which only moves forward.
class LocalValues {
public:
  LocalValues(OpBuilder &builder, StepOp step, FlatSymbolRefAttr meshName,
              const PaddedShapes &padded)
      : builder(builder), mesh(getMesh(step)),
        stages(findPipelineAxis(step->getParentOfType<ModuleOp>())), meshName(meshName),
        padded(padded), manual(step) {}

  /// Sets the local result of the op that produces `global`.
  void define(Value global, LocalValue local);

  /// `global` in the sharding that its op produces.
  LocalValue produced(Value global) const { return defined.lookup(global); }
  bool isDefined(Value global) const { return defined.contains(global); }

  /// `global` in the sharding `wanted`, for `consumer`. Partial sums are reduced unless `wanted` is
  /// partial too; any other change of sharding is reported as a remark on `consumer`.
  LocalValue as(Value global, ShardingAttr wanted, Operation *consumer);
  /// `global` whole on every rank.
  LocalValue whole(Value global, Operation *consumer);

  /// `local`, a part of `global` that is uneven along `dim`, with its padding there set to `fill`.
  LocalValue masked(Value global, LocalValue local, int64_t dim, double fill);
  /// True where that needs no op.
  bool hasMasked(const LocalValue &local, int64_t dim, double fill) const;
  /// `value` has `fill` in its padding along `dim`: it is its own mask.
  void noteMasked(Value value, int64_t dim, double fill) {
    (fill == 0 ? zeroMasks : extremeMasks)[{value, dim}] = value;
  }

  /// True where dimension `dim` of a tensor of the shape of `global` is padded or does not divide
  /// over its axes.
  bool isUneven(Value global, ShardingAttr sharding, int64_t dim) const;

  /// `local`, a partial sum over `partial`, with the sum over microbatches completed, if that is
  /// among them: an all_reduce over the axis of microbatches, which Microbatches.h replaces.
  Value overMicrobatches(Value local, ReduceKind kind, SmallVectorImpl<StringAttr> &partial);
  /// `local` summed, or its maximum taken, over the ranks along `axes`; of one rank it is that.
  Value allReduce(Value local, ReduceKind kind, ArrayRef<StringAttr> axes, Location loc);
  /// The number of samples of a batch of `batch`, split over `axes`, in the current microbatch;
  /// with `counted`, only those that count in an evaluation.
  Value samplesOfMicrobatch(int64_t batch, ArrayRef<StringAttr> axes, bool counted, Location loc);
  /// `indices` into a dimension of `size` elements, padded to `padded`, that is split over `axes`,
  /// converted to this rank's part.
  Value shardIndices(Value indices, int64_t size, int64_t padded, ArrayRef<StringAttr> axes,
                     Location loc);
  /// The number of elements of such a dimension on this rank.
  Value shardSize(int64_t size, int64_t padded, ArrayRef<StringAttr> axes, Location loc);
  /// The index of the first of these samples.
  Value shardOffset(int64_t size, int64_t padded, ArrayRef<StringAttr> axes, Location loc);
  /// Microbatches are of whole samples (StepShardings::hasWholeSamples): ranks may exchange those
  /// of one microbatch.
  bool hasWholeSamples = false;
  /// Partial sums are scattered over ranks in each microbatch, and the parts added up; else the
  /// other way round.
  bool scatterEach = false;
  /// Rejects `global`, which would have to move between microbatches.
  void refuseMicrobatches(Value global, Operation *consumer);
  /// Rejects `op`, which takes `size` instances of a factor in as many parts over `axes`, all of
  /// one size.
  void refuseUneven(Operation *op, int64_t size, ArrayRef<StringAttr> axes);
  /// Rejects `op`, which `ranks` ranks share, unless that is the number of those over `axes`.
  void requireRanks(Operation *op, int64_t ranks, ArrayRef<StringAttr> axes);
  /// False after a diagnostic: an op needs a value of several microbatches at once, even parts, or
  /// another number of ranks.
  bool succeeded() const { return !failed; }

  /// `axes` in the order of the mesh.
  SmallVector<StringAttr> inMeshOrder(ArrayRef<StringAttr> axes) const;
  ArrayAttr axisArray(ArrayRef<StringAttr> axes) const {
    return getAxisArray(builder.getContext(), axes);
  }
  ShardingAttr sharding(const DimAxes &axes, ArrayRef<StringAttr> unreduced = {}) const;
  ShardingAttr replicated(Value global) const;
  /// The type one rank holds of `global` in `sharding`.
  RankedTensorType localType(Value global, ShardingAttr sharding) const;

private:
  LocalValue remember(Value global, LocalValue local);
  /// The attribute `part` of ops on a dimension of `size` elements, padded to `padded`, over
  /// `axes`; null if it is omitted.
  IntegerAttr partAttr(int64_t size, int64_t padded, ArrayRef<StringAttr> axes) const;

  // Reshard.cpp
  FailureOr<LocalValue> reduced(Value global, LocalValue local, const DimAxes &wanted);
  bool movesMicrobatches(Value global, ShardingAttr from, const DimAxes &wanted) const;
  SmallVector<StringAttr> rankAxes(Value global) const;
  reshard::Problem problemOf(Value global, const LocalValue &local, const DimAxes &wanted) const;
  Operation *buildPermute(const reshard::Step &step, ArrayRef<StringAttr> all,
                          RankedTensorType type, Value value, Location loc);
  Operation *buildStep(const reshard::Step &step, ArrayRef<StringAttr> all, Value value,
                       Location loc);
  bool refuseBoundary(Value global, ShardingAttr from, const DimAxes &wanted, Operation *consumer);
  /// Rejects a change of the sharding of `global` that the solver does not take, for `fault`.
  void refuseReshard(Value global, const std::string &fault, Operation *consumer);
  void remark(Operation *consumer, Value global, Operation *collective) const;

  OpBuilder &builder;
  MeshAttr mesh;
  StringAttr stages; ///< the axis of a pipeline; null without
  FlatSymbolRefAttr meshName;
  const PaddedShapes &padded;
  const ManualAxes manual; ///< of the step as it is before it is partitioned
  bool failed = false;
  std::map<std::pair<int64_t, bool>, DenseMap<Attribute, Value>> microbatchSamples;
  DenseMap<Value, Value> microbatchSums;
  /// By size and padded size.
  std::map<std::pair<int64_t, int64_t>, DenseMap<std::pair<Value, Attribute>, Value>>
      shardIndicesOf;
  std::map<std::pair<int64_t, int64_t>, DenseMap<Attribute, Value>> shardSizes, shardOffsets;
  DenseMap<Value, LocalValue> defined;
  DenseMap<std::pair<Value, Attribute>, LocalValue> resharded;
  /// Values derived from the one that the op produced.
  DenseMap<Value, SmallVector<LocalValue, 1>> known;
  reshard::Solver solver;
  /// Local value and dimension -> the mask with the fill 0, and with another.
  DenseMap<std::pair<Value, int64_t>, Value> zeroMasks, extremeMasks;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_PARTITION_LOCALVALUES_H
