//===- OpSplit.h - the axes that split the factors of one op ----*- C++ -*-===//

#ifndef PASSES_SHARDING_OPSPLIT_H
#define PASSES_SHARDING_OPSPLIT_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Mesh axes that split something, major to minor.
using AxisList = SmallVector<StringAttr>;
/// One list per dimension of a tensor.
using DimAxes = SmallVector<AxisList>;

/// The axes that split each dimension of a tensor with `sharding`; no dimensions without one.
DimAxes dimAxesOf(ShardingAttr sharding);

/// How one op is split over a mesh: the axes of each factor of its sharding rule. An axis splits
/// at most one factor. A factor is split only where every tensor it runs over can follow: it is not
/// `whole`, the factors major to it in a dimension are split completely, and where it shares a
/// dimension with others it divides evenly.
///
/// This is the one place that relates shardings across an op: propagation uses it to carry
/// shardings, and partitioning to find the sharding that each operand must have. Refers to the
/// rule, which must outlive it.
class OpSplit {
public:
  /// The split of an op whose results are settled: factors of results are split as the results
  /// are, factors that are reduced away for all of them as the first operand that is split along
  /// them.
  static OpSplit settle(const nn::ShardingRule &rule, MeshAttr mesh, ArrayRef<DimAxes> operands,
                        ArrayRef<DimAxes> results);

  /// The axes of each dimension of a tensor whose dimensions run over `tensor`.
  DimAxes project(const nn::TensorFactors &tensor) const;

  /// The axes of a dimension, by the size of each.
  struct DimSplit {
    SmallVector<int64_t> sizes;
    /// One of the axes is that of microbatches.
    bool overMicrobatches = false;
    /// They may be split, so that factors of the dimension get parts of one.
    bool mayCut = false;
  };
  /// True if a tensor whose dimensions have the factors `tensor` may be split this way in all of
  /// them at once: the factors major to one may be in another dimension.
  static bool admits(const nn::ShardingRule &rule, const nn::TensorFactors &tensor,
                     ArrayRef<DimSplit> dims);
  /// The dimensions of such a tensor that may be split as in `dims`, each together with the others
  /// that may.
  static SmallVector<bool> findAdmitted(const nn::ShardingRule &rule,
                                        const nn::TensorFactors &tensor, ArrayRef<DimSplit> dims);
  /// The same for axes of a mesh, whole.
  static SmallVector<bool> findAdmitted(const nn::ShardingRule &rule, MeshAttr mesh,
                                        const nn::TensorFactors &tensor, ArrayRef<AxisList> dims);

  /// The axes of factor `factor`.
  ArrayRef<StringAttr> getAxes(int64_t factor) const { return factorAxes[factor]; }

  /// The axes of all reduced factors that `result` (one of the rule's) lacks: it is partial over
  /// these.
  AxisList getReducedAxes(const nn::TensorFactors &result) const;

private:
  OpSplit(const nn::ShardingRule &rule, MeshAttr mesh)
      : rule(rule), mesh(mesh), factorAxes(rule.factors.size()) {}
  /// Gives the factors of `tensor` the axes of its dimensions; with `reducedOnly` only factors that
  /// are reduced away.
  void take(const nn::TensorFactors &tensor, const DimAxes &axes, bool reducedOnly);
  bool takeDim(const nn::DimFactors &dim, ArrayRef<StringAttr> wanted, bool reducedOnly);
  LogicalResult give(int64_t factor, ArrayRef<StringAttr> wanted);
  LogicalResult giveMicrobatches(int64_t factor, ArrayRef<StringAttr> wanted);

  const nn::ShardingRule &rule;
  MeshAttr mesh;
  SmallVector<AxisList> factorAxes;
};

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_OPSPLIT_H
