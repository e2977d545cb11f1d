//===- ShardingProblem.h - steps as a propagation problem -------*- C++ -*-===//

#ifndef PASSES_GLOBAL_SHARDINGPROBLEM_H
#define PASSES_GLOBAL_SHARDINGPROBLEM_H

#include "dialect/fsdp/Manual.h"
#include "passes/propagation/Problem.h"
#include "passes/sharding/MeshParts.h"
#include "passes/sharding/OpSplit.h"
#include "passes/sharding/ShardingRules.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace mlir::fsdp {

/// Why a dimension of a value is split over an axis.
struct ShardingOrigin {
  int64_t dim;
  StringAttr axis;
  /// The op across which the axis came, and the other value of that op that had it; null if the
  /// axis was specified (an input, a constraint).
  Operation *op;
  Value from;
  /// The rounds (passes/propagation/Problem.h).
  int64_t priority;
  int opPriority;
  bool aggressive;
};

/// The values and rules of steps of one module as a problem of passes/propagation, and its
/// solution.
class ShardingProblem {
public:
  /// Inputs are split along their sample dimension over `batchAxes`; constraints and the compute
  /// shardings of placements are fixed. Everything else is open, parameters included, except for
  /// the axes that split the batch and those that store the parameter. All reads of a parameter are
  /// one value.
  /// Emits an error and fails for an op without a rule.
  static FailureOr<ShardingProblem> build(ArrayRef<StepOp> steps, ArrayRef<StringAttr> batchAxes);

  /// With `subAxes`, dimensions may be split over parts of axes; see getCuts. The functions
  /// below require that it returns none.
  /// Constraints apply to ranks: where one would keep the axis of microbatches from samples, that
  /// axis is propagated separately, without constraints, and becomes the last axis of the
  /// dimensions that it reaches.
  void solve(bool subAxes);
  /// The positions at which the solution splits axes of the mesh, each once, in the order of the
  /// ops.
  SmallVector<AxisCut> getCuts() const;

  /// The axes of each dimension of `value`, once solved.
  DimAxes axesOf(Value value) const;
  /// The axes of the parameter in compute; none if no step reads it.
  DimAxes axesOf(ParamOp param) const;
  /// In the order in which propagation found them.
  SmallVector<ShardingOrigin> originsOf(Value value) const;

private:
  ShardingProblem(ModuleOp module, MeshAttr mesh, ArrayRef<StringAttr> batchAxes)
      : symbols(module), mesh(mesh), batchAxes(batchAxes) {
    for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames(), mesh.getAxisSizes())) {
      problem.mesh.names.push_back(name.str());
      problem.mesh.sizes.push_back(size);
    }
  }
  LogicalResult addValues(Operation *op);
  /// Keeps the axes that are manual for `value` away from it, except those that its sharding names.
  void keepManual(Value value, propagation::Sharding &sharding) const;
  void splitSamples(ConstraintOp boundary, propagation::Sharding &sharding) const;
  /// True for a value at the boundary of a region in local terms, or in one.
  bool isManual(Value value) const;
  using Admits = decltype(propagation::Problem::admits);
  /// Propagates `asked`, a variant of `problem`.
  propagation::Solution propagate(propagation::Problem asked, const Admits &admits) const;
  /// The problem with the axis of microbatches alone: without constraints, reshards and placements.
  propagation::Problem ofMicrobatches() const;
  /// The problem without that axis, where it splits values as in `samples`.
  propagation::Problem ofRanks(const propagation::Solution &samples) const;
  void solveSeparately(const propagation::Solution &samples);
  /// The data of a parameter.
  propagation::Sharding shardingOf(ParamOp param) const;
  void addOp(Operation *op);
  /// A gradient is split as its parameter is.
  void tie(const DenseMap<StringAttr, int> &symbols, StringAttr symbol, Value value);
  /// True if the op that produces `value` can split dimension `dim` over `axes`, with its other
  /// dimensions as in `current`.
  bool admits(int value, int dim, const propagation::AxisList &axes,
              const propagation::Sharding &current) const;
  /// `axes` as an op uses them; nothing if they are parts and parts are not allowed.
  std::optional<OpSplit::DimSplit> toSplit(const propagation::AxisList &axes) const;
  SmallVector<StringAttr> splittingAxes(ArrayRef<StringAttr> names) const;
  propagation::AxisList toAxes(ArrayRef<StringAttr> names) const;
  AxisList toNames(const propagation::AxisList &axes) const;

  SymbolTable symbols; ///< of the module
  MeshAttr mesh;
  bool mayCut = false;
  SmallVector<StringAttr> batchAxes;
  DenseMap<Operation *, std::unique_ptr<ManualAxes>> manual; ///< of each step
  SmallVector<StringAttr> manualAxes;                        ///< of all of them
  propagation::Problem problem;
  propagation::Solution solution;
  /// For each value its origins in the solution, computed at the first request.
  mutable std::vector<std::vector<size_t>> originsOfValue;
  DenseMap<Value, int> numbers;
  DenseMap<StringAttr, int> parameters, carried;
  std::vector<Value> values;
  /// The values of `problem`, then those of `moves`.
  std::vector<Operation *> ops;
  /// The reshards of the steps, through which microbatches pass and nothing else.
  std::vector<propagation::Op> moves;
  std::vector<Operation *> moveOps;
  mutable ShardingRules rules;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_SHARDINGPROBLEM_H
