//===- SampleAnalysis.h - how values depend on samples ----------*- C++ -*-===//

#ifndef PASSES_GLOBAL_SAMPLEANALYSIS_H
#define PASSES_GLOBAL_SAMPLEANALYSIS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// How a value depends on the samples of a batch.
enum class SampleDependence {
  none,      ///< not at all
  perSample, ///< each element on one sample, along one dimension of the value
  mean,      ///< the mean of a term for each sample, possibly plus a value that depends on none
  sum,       ///< the sum of a term for each sample
  affineSum, ///< a number: such a sum plus values for the whole batch (none, mean)
  batch,     ///< in another way
};

/// Follows the samples of a batch through the ops of a step, from its inputs to its measures: which
/// dimensions run over samples (by the sharding rules of the ops), and how each value depends on
/// them. The step is one block without control flow, so one pass in the order of its ops is enough:
/// no fixed point, and each warning once.
class SampleAnalysis {
public:
  SampleAnalysis(StepOp step, int64_t batch) : step(step), batch(batch) {}

  /// Fails with a warning if the step cannot exclude samples.
  LogicalResult run();

  /// An operand with a dimension of samples that its op reduces: each sample has `rows` consecutive
  /// elements along `dim`.
  struct Mask {
    OpOperand *operand;
    int64_t dim, rows;
  };
  ArrayRef<Mask> getMasks() const { return masks; }
  /// Means over samples, with the number of factors of each that are samples.
  const llvm::MapVector<nn::ReduceOp, int> &getMeans() const { return means; }
  /// The loss and the metrics.
  ArrayRef<Operation *> getMeasures() const { return measures; }

  SampleDependence getDependence(Value value) const { return dependences.lookup(value); }
  /// In local terms: the axes of the manual region over which ranks have different samples, and all
  /// of its axes; null for other values.
  std::pair<ArrayAttr, ArrayAttr> getSampleAxes(Value value) const {
    return sampleAxes.lookup(value);
  }

private:
  /// For each dimension of a tensor, the number of consecutive elements that belong to one sample:
  /// 0 if it does not run over samples, `mixed` if samples are not consecutive.
  using DimRows = SmallVector<int64_t, 4>;

  LogicalResult visitOp(Operation *op);
  LogicalResult visitInput(InputOp input);
  LogicalResult visitRuled(nn::ShardingRuleOpInterface op);
  LogicalResult visitBoundary(Operation *op, ShardingAttr sharding, ArrayAttr over);
  LogicalResult visitCollective(Operation *op);
  LogicalResult visitMeasure(Operation *op);
  LogicalResult addMask(Operation *op, int64_t factor, const nn::ShardingRule &rule,
                        ArrayRef<int64_t> rowsOfFactor);
  SampleDependence ofOperands(Operation *op) const;
  SampleDependence ofResult(Operation *op, const nn::ShardingRule &rule,
                            const nn::TensorFactors &result, ArrayRef<int64_t> rowsOfFactor) const;

  StepOp step;
  int64_t batch;
  DenseMap<Value, DimRows> rows;
  DenseMap<Value, SampleDependence> dependences;
  DenseMap<Value, std::pair<ArrayAttr, ArrayAttr>> sampleAxes;
  SmallVector<Mask> masks;
  llvm::MapVector<nn::ReduceOp, int> means;
  SmallVector<Operation *> measures;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_SAMPLEANALYSIS_H
